package input_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stintgo/stint/cmd/stint/internal/input"
)

func collect(r io.Reader, sep byte) ([]string, error) {
	var got []string
	for record, err := range input.Records(r, sep) {
		if err != nil {
			return got, err
		}
		got = append(got, record)
	}
	return got, nil
}

func TestRecords(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for _, row := range []struct {
		text string
		sep  byte
		want []string
	}{
		{"", '\n', nil},
		{"\n\n", '\n', nil},
		{"a\nb\n", '\n', []string{"a", "b"}},
		{"a\nb", '\n', []string{"a", "b"}},
		{"a\n\n b \r\n", '\n', []string{"a", " b \r"}},
		{"a\nb\x00c", 0, []string{"a\nb", "c"}},
		{"a,b,,c", ',', []string{"a", "b", "c"}},
		{long + "\n" + long, '\n', []string{long, long}},
	} {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(row.text), "bytewise": iotest.OneByteReader(strings.NewReader(row.text)),
		} {
			got, err := collect(r, row.sep)
			if err != nil || !slices.Equal(got, row.want) {
				t.Errorf("%s: %.40q = %.80q, %v; want %.80q", name, row.text, got, err, row.want)
			}
		}
	}
}

func TestRecords_Errors(t *testing.T) {
	broken := errors.New("broken")
	for _, row := range []struct {
		name string
		r    io.Reader
		want error
		says string
	}{
		{"NUL", strings.NewReader("a\nb\x00\n"), input.ErrNUL, "input 2"},
		{"NUL in the last record", strings.NewReader("a\nb\x00c\x00"), input.ErrNUL, "input 2"},
		{"too long", strings.NewReader("a\n" + strings.Repeat("x", input.MaxRecord+70_000)), input.ErrLong, "input 2"},
		{"read", io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(broken)), broken, "input 2"},
	} {
		got, err := collect(row.r, '\n')
		if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %v that says %q", row.name, err, row.want, row.says)
		}
		if !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s: records before the error = %q, want a", row.name, got)
		}
	}
}

func FuzzRecords(f *testing.F) {
	for _, seed := range []string{"", "a\nb", "\n", "a\x00b\n", "\n\n\na"} {
		f.Add(seed, byte('\n'))
	}
	f.Fuzz(func(t *testing.T, text string, sep byte) {
		got, err := collect(strings.NewReader(text), sep)
		if err != nil {
			if !errors.Is(err, input.ErrNUL) || !strings.Contains(text, "\x00") {
				t.Errorf("error for %q: %v", text, err)
			}
			return
		}
		if sep != 0 && strings.Contains(text, "\x00") {
			t.Errorf("%q has a NUL byte, and its records %q", text, got)
		}
		want := slices.DeleteFunc(strings.Split(text, string([]byte{sep})), func(s string) bool { return s == "" })
		if !slices.Equal(got, want) {
			t.Errorf("%q split at %q = %q, want %q", text, sep, got, want)
		}
	})
}

func TestSplitArgs(t *testing.T) {
	for _, row := range []struct{ args, command, lists string }{
		{"echo a", "echo a", ""},
		{"echo ::: a b", "echo", "a b"},
		{"::: a", "", "a"},
		{"echo ::: a b ::: 1 2", "echo", "a b|1 2"},
		{"echo ::: a b :::+ 1 2", "echo", "a b|+1 2"},
		{"echo :::: f g ::: a", "echo", "@f|@g|a"},
		{"echo ::: a ::::+ f -", "echo", "a|+@f|+@-"},
		{"echo ::::: a :::x ::: b", "echo ::::: a :::x", "b"},
	} {
		command, lists, err := input.SplitArgs(strings.Fields(row.args))
		var got []string
		for _, list := range lists {
			text := strings.Join(list.Values, " ")
			if list.File != "" {
				text = "@" + list.File
			}
			if list.Linked {
				text = "+" + text
			}
			got = append(got, text)
		}
		if err != nil || strings.Join(command, " ") != row.command || strings.Join(got, "|") != row.lists {
			t.Errorf("%s: %q, %q, %v", row.args, command, got, err)
		}
	}
	for args, want := range map[string]error{
		"echo :::": input.ErrEmptyList, "echo ::: ::: a": input.ErrEmptyList, "echo ::: a :::": input.ErrEmptyList,
		"echo ::: a ::::+": input.ErrEmptyList, "echo :::+ a": input.ErrUnlinked, "echo ::::+ f": input.ErrUnlinked,
	} {
		if _, _, err := input.SplitArgs(strings.Fields(args)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", args, err, want)
		}
	}
}

func TestProduct(t *testing.T) {
	for _, row := range []struct {
		groups []input.Group
		want   string
	}{
		{[]input.Group{{{"a", "b"}}, {{"1", "2", "3"}}}, "a1 a2 a3 b1 b2 b3"},
		{[]input.Group{{{"a", "b"}, {"c", "d"}}}, "ac bd"},
		{[]input.Group{{{"a", "b", "c"}, {"d", "e"}}}, "ad be"},
		{[]input.Group{{{"a", "b"}, {"c", "d"}}, {{"1", "2"}}}, "ac1 ac2 bd1 bd2"},
		{[]input.Group{{{"a", "b"}}, {{}}}, ""},
	} {
		var got []string
		for words := range input.Product(row.groups) {
			got = append(got, strings.Join(words, ""))
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%q: got %q, want %q", row.groups, got, row.want)
		}
		if n := input.Count(row.groups); n != len(got) {
			t.Errorf("%q: Count = %d, want %d", row.groups, n, len(got))
		}
	}
}

// Products that are too large to be counted begin like others, and have no elements only if a list
// has none.
func TestProduct_TooLargeToCount(t *testing.T) {
	two, none := input.Group{{"a", "b"}}, input.Group{{}}
	for _, row := range []struct {
		groups      []input.Group
		count, read int
	}{
		{slices.Repeat([]input.Group{two}, 62), 1 << 62, 1},
		{slices.Repeat([]input.Group{two}, 63), math.MaxInt, 1},
		{slices.Repeat([]input.Group{two}, 64), math.MaxInt, 1},
		{slices.Repeat([]input.Group{{{"a", "b", "c"}}}, 41), math.MaxInt, 1},
		{append(slices.Repeat([]input.Group{two}, 64), none), 0, 0},
	} {
		if n := input.Count(row.groups); n != row.count {
			t.Errorf("%d groups: Count = %d, want %d", len(row.groups), n, row.count)
		}
		read := 0
		for range input.Product(row.groups) {
			read++
			break
		}
		if read != row.read {
			t.Errorf("%d groups: Product yields %d elements", len(row.groups), read)
		}
	}
}

func TestParseSplitter(t *testing.T) {
	for _, row := range []struct{ sep, record, want string }{
		{`\t`, "a\tb", "a|b"},
		{",", "a,b,", "a|b|"},
		{".", "a.b", "a|b"},
		{"|", "a|b", "a|b"},
		{" +", "a  b c", "a|b|c"},
		{`\|`, "a|b", "a|b"},
		{"é", "aéb", "a|b"},
		{";", "ab", "ab"},
	} {
		s, err := input.ParseSplitter(row.sep)
		if got := strings.Join(s.Split(row.record), "|"); err != nil || got != row.want {
			t.Errorf("%q of %q = %q, %v; want %q", row.sep, row.record, got, err, row.want)
		}
	}
	for _, sep := range []string{"", "a(", "[a"} {
		if _, err := input.ParseSplitter(sep); err == nil {
			t.Errorf("%q was accepted", sep)
		}
	}
	if got := (input.Splitter{}).Split("a b"); !slices.Equal(got, []string{"a b"}) {
		t.Errorf("the zero Splitter cut: %q", got)
	}
}

func TestParseDelimiter(t *testing.T) {
	for text, want := range map[string]byte{`\n`: '\n', `\0`: 0, ",": ',', `\t`: '\t', " ": ' ', `\\`: '\\'} {
		if got, err := input.ParseDelimiter(text); err != nil || got != want {
			t.Errorf("%q = %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "ab", "é", `\x`} {
		if _, err := input.ParseDelimiter(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestInterruptible(t *testing.T) {
	f, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	r, stop, err := input.Interruptible(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := w.WriteString("ab"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 10)
	if n, err := r.Read(b); err != nil || !bytes.Equal(b[:n], []byte("ab")) {
		t.Fatalf("Read = %q, %v", b[:n], err)
	}
	result := make(chan error)
	go func() {
		_, err := r.Read(b) // no input comes: only the context ends this
		result <- err
	}()
	cause := errors.New("halted")
	cancel(cause)
	if err := <-result; !errors.Is(err, cause) {
		t.Errorf("Read = %v, want the context's cause", err)
	}
	w.Close()
}

func TestInterruptible_EndOfFile(t *testing.T) {
	f, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w.Close()
	r, stop, err := input.Interruptible(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if got, err := io.ReadAll(r); err != nil || len(got) != 0 {
		t.Errorf("ReadAll = %q, %v", got, err)
	}
}
