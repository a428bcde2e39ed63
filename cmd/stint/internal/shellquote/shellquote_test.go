package shellquote_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/shellquote"
)

func TestQuote(t *testing.T) {
	for _, row := range []struct{ word, want string }{
		{"", "''"},
		{"plain-1.txt", "plain-1.txt"},
		{"/usr/lib/a,b:c=d@e%f+g", "/usr/lib/a,b:c=d@e%f+g"},
		{"two words", "'two words'"},
		{"it's", `'it'\''s'`},
		{"'", `''\'''`},
		{"$HOME `id` \\", "'$HOME `id` \\'"},
		{"~root", "'~root'"},
		{"=ls", "'=ls'"},
		{"a\nb", "'a\nb'"},
		{"größe", "'größe'"},
	} {
		if got := shellquote.Quote(row.word); got != row.want {
			t.Errorf("Quote(%q) = %s, want %s", row.word, got, row.want)
		}
	}
}

func TestJoin(t *testing.T) {
	if got := shellquote.Join([]string{"gzip", "-c", "a b", ""}); got != "gzip -c 'a b' ''" {
		t.Errorf("Join = %s", got)
	}
}

// The shell itself decides: it must print every word back unchanged.
func FuzzQuote(f *testing.F) {
	for _, seed := range []string{"", "a", "it's", "'''", "\\'", "$(id)", "a\nb", "-n", "!x", "*", "\xff\xfe", "~"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.Contains(word, "\x00") {
			return // arguments cannot contain it, so it is never quoted
		}
		script := "printf '%s.' " + shellquote.Quote(word)
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", script).Output()
		if err != nil {
			t.Fatalf("sh -c %q: %v", script, err)
		}
		if string(out) != word+"." {
			t.Errorf("sh read %q back as %q", word, out)
		}
	})
}
