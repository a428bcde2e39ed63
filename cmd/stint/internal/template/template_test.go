package template_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/template"
)

func TestString(t *testing.T) {
	job := &template.Job{Seq: 7, Slot: 2, Args: []string{"src/a.tar.gz"}, Fields: []string{"x.y", "d/e f"}}
	for _, row := range []struct{ word, want string }{
		{"", ""},
		{"plain", "plain"},
		{"{}", "src/a.tar.gz"},
		{"{.}", "src/a.tar"},
		{"{/}", "a.tar.gz"},
		{"{//}", "src"},
		{"{/.}", "a.tar"},
		{"{#}-{%}", "7-2"},
		{"{1}", "x.y"},
		{"{1.}", "x"},
		{"{2/}", "e f"},
		{"{2//}", "d"},
		{"{2/.}", "e f"},
		{"out/{/}.{1}", "out/a.tar.gz.x.y"},
		{"{print $1}", "{print $1}"},
		{"{0}", "{0}"},
		{"{01}", "{01}"},
		{"{1x}", "{1x}"},
		{"{99999999999999999999}", "{99999999999999999999}"},
		{"{", "{"},
		{"}{", "}{"},
		{"{{}}", "{src/a.tar.gz}"},
		{"{ {}", "{ src/a.tar.gz"},
	} {
		got, err := template.Parse(row.word, "").String(job)
		if err != nil || got != row.want {
			t.Errorf("%q = %q, %v; want %q", row.word, got, err, row.want)
		}
	}
}

func TestString_Paths(t *testing.T) {
	for _, row := range []struct{ path, noExt, base, dir, baseNoExt string }{
		{"a", "a", "a", ".", "a"},
		{"a.b", "a", "a.b", ".", "a"},
		{".bashrc", ".bashrc", ".bashrc", ".", ".bashrc"},
		{"d/.bashrc", "d/.bashrc", ".bashrc", "d", ".bashrc"},
		{"d.e/a", "d.e/a", "a", "d.e", "a"},
		{"/a.b", "/a", "a.b", "/", "a"},
		{"d/", "d/", "", "d", ""},
		{"", "", "", ".", ""},
	} {
		job := &template.Job{Args: []string{row.path}}
		for word, want := range map[string]string{
			"{.}": row.noExt, "{/}": row.base, "{//}": row.dir, "{/.}": row.baseNoExt,
		} {
			if got, _ := template.Parse(word, "").String(job); got != want {
				t.Errorf("%s of %q = %q, want %q", word, row.path, got, want)
			}
		}
	}
}

func TestParse_OtherName(t *testing.T) {
	job := &template.Job{Args: []string{"in"}, Fields: []string{"in"}}
	for _, row := range []struct{ word, want string }{
		{"@.gz", "in.gz"}, {"{}", "{}"}, {"{.} @", "in in"}, {"{@", "{in"}, {"{1}", "in"},
	} {
		if got, _ := template.Parse(row.word, "@").String(job); got != row.want {
			t.Errorf("%q with -I@ = %q, want %q", row.word, got, row.want)
		}
	}
}

func TestAppendWords_OneForEachInput(t *testing.T) {
	job := &template.Job{Seq: 3, Args: []string{"a", "b"}, Fields: []string{"a", "b"}}
	for _, row := range []struct{ word, want string }{
		{"{}", "a|b"}, {"-f{}", "-fa|-fb"}, {"{1}", "a"}, {"{2}{1}", "ba"}, {"x", "x"}, {"{#}", "3"}, {"{}{2}", "ab|bb"},
	} {
		got, err := template.Parse(row.word, "").AppendWords(nil, job)
		if err != nil || !slices.Equal(got, strings.Split(row.want, "|")) {
			t.Errorf("%q = %q, %v; want %s", row.word, got, err, row.want)
		}
	}
}

func TestString_MissingFieldIsAnError(t *testing.T) {
	job := &template.Job{Args: []string{"a b"}, Fields: []string{"a", "b"}}
	_, err := template.Parse("rm -r /srv/{3}", "").String(job)
	if !errors.Is(err, template.ErrField) || !strings.Contains(err.Error(), "{3}") {
		t.Errorf("err = %v, want one that names {3}", err)
	}
}

func TestString_SlotUnknown(t *testing.T) {
	if got, _ := template.Parse("gpu{%}", "").String(&template.Job{}); got != "gpu{%}" {
		t.Errorf("got %q, want the placeholder left in place", got)
	}
}

func TestPath_StaysInItsDirectory(t *testing.T) {
	for _, row := range []struct {
		word, input string
		want        string // empty: refused
	}{
		{"out/{}", "a", "out/a"},
		{"out/{}", "a/b", "out/a/b"},
		{"out/{}", "/etc/x", "out//etc/x"},
		{"out/{}", "a/../b", "out/a/../b"},
		{"out/{}", "..a", "out/..a"},
		{"out/{}", "../x", ""},
		{"out/{}", "..", ""},
		{"out/{}", "a/../../x", ""},
		{"out/{}", "../out2/x", ""},
		{"out/{}", "../out/x", "out/../out/x"}, // out and back
		{"out/x-{}", "/../../y", ""},
		{"../out/{}", "a", "../out/a"},
		{"../out/{}", "../../x", ""},
		{"./{}", "../x", ""},
		{"/srv/out/{}.gz", "../x", ""},
		{"/{}", "../x", "/../x"}, // the same as /x
		{"{}.gz", "a/x", "a/x.gz"},
		{"{}.gz", "./x", "./x.gz"},
		{"{}.gz", "../x", ""},
		{"{}.gz", "/etc/x", ""},
		{"{//}/{/.}.png", "a/x.jpg", "a/x.png"},
		{"{//}/{/.}.png", "../x.jpg", ""},
		{"x-{}", "y", "x-y"},
		{"x-{}", "/../../y", ""},
		{"{#}/{}", "../x", ""},
		{"{#}/{}", "x", "7/x"},
		{"{%}/{}", "../3/x", ""},
		{"../{}", "../x", ""},
		{"../{}", "x", "../x"},
		{"../out", "", "../out"},
		{"/var/log/{#}", "../x", "/var/log/7"},
	} {
		got, err := template.Parse(row.word, "").Path(&template.Job{Seq: 7, Args: []string{row.input}})
		if got != row.want || (row.want == "") != errors.Is(err, template.ErrEscape) {
			t.Errorf("%s with %q: %q, %v; want %q", row.word, row.input, got, err, row.want)
		}
	}
}

func TestDiffers(t *testing.T) {
	for word, want := range map[string]bool{
		"": false, "a": false, "{%}": false, "a{}": true, "{#}": true, "{%}{2/}": true,
	} {
		if got := template.Parse(word, "").Differs(); got != want {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}

func TestHasPlaceholder(t *testing.T) {
	for word, want := range map[string]bool{"": false, "a": false, "{x}": false, "{}": true, "{#}": true, "a{2}b": true} {
		if got := template.Parse(word, "").HasPlaceholder(); got != want {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}

// Replacing placeholders as text, one after the other, gives the same for inputs without
// braces.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "{}", "a{}b", "{#}{%}{1}{2.}", "{{}}", "{1/.}{//}", "{", "}", "{x}{}", "{12}"} {
		f.Add(seed, "d/in.put")
	}
	f.Fuzz(func(t *testing.T, word, arg string) {
		if strings.ContainsAny(arg, "{}") {
			return
		}
		job := &template.Job{Seq: 5, Slot: 6, Args: []string{arg}, Fields: []string{arg}}
		got, err := template.Parse(word, "").String(job)
		if err != nil {
			return
		}
		want := strings.NewReplacer("{}", arg, "{#}", "5", "{%}", "6", "{1}", arg).Replace(word)
		if strings.ContainsAny(word, "./") {
			return // the trimmed forms have tables of their own
		}
		if got != want {
			t.Errorf("%q with %q = %q, want %q", word, arg, got, want)
		}
	})
}
