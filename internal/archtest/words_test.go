package archtest_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// word is a text that files of the project may not contain. The patterns are written so
// that they do not match themselves.
type word struct {
	pattern *regexp.Regexp
	in      []string // extensions of the files to check; nil is all
	say     string
}

var words = []word{
	{
		pattern: regexp.MustCompile(`/(w[o]rk|f[a]rm|r[o]ot|h[o]me/[a-z]+)/`),
		say:     "a path of one machine, which others do not have",
	},
	{
		pattern: regexp.MustCompile(`\b(registry|proxy|deb)\.[a-z]+\.(org|com)\b`),
		say:     "the host of a registry: the user's own tools know theirs",
	},
	{
		pattern: regexp.MustCompile(`\b(T[O]DO|F[I]XME|X[X]X|H[A]CK|(not |un)im[p]lemented|st[u]b)\b`),
		in:      []string{".go", ".js", ".sql", ".lua"},
		say:     "a mark of unfinished work: finish it, or write down in docs/ what is not there yet",
	},
	{
		pattern: regexp.MustCompile(`%[0-9.]*[a-z] (is|are) n[o] (l[^o]|[^l])`),
		in:      []string{".go"},
		say:     `a message that says "X is n` + `o Y": write "X is not a Y", or "unknown Y" and what is known`,
	},
	{
		pattern: regexp.MustCompile(`^(<{7} |>{7} |={7}$)`),
		say:     "a conflict that was not resolved",
	},
}

func TestWords(t *testing.T) {
	err := walk(func(path string, content []byte) error {
		for _, found := range wordsIn(path, content) {
			t.Error(found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wordsIn finds the words in a text file; checksums are skipped.
func wordsIn(path string, content []byte) (found []string) {
	if bytes.IndexByte(content, 0) >= 0 || strings.HasSuffix(path, "go.sum") {
		return nil
	}
	for i, line := range strings.Split(string(content), "\n") {
		for _, w := range words {
			if match := w.pattern.FindString(line); match != "" && w.about(path) {
				found = append(found, fmt.Sprintf("%s:%d: %q: %s", path, i+1, match, w.say))
			}
		}
	}
	return found
}

func (w word) about(path string) bool {
	return w.in == nil || slices.Contains(w.in, filepath.Ext(path))
}
