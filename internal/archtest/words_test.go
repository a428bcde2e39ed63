package archtest_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// word is something that must not stand in a file of the project. The patterns
// are written so that they do not match themselves.
type word struct {
	pattern *regexp.Regexp
	in      string // suffixes of the files it is about, separated by spaces; "" is all
	say     string
}

var words = []word{
	{
		pattern: regexp.MustCompile(`/(w[o]rk|f[a]rm|r[o]ot|h[o]me/[a-z]+)/`),
		say:     "a path of somebody's machine: nobody else has it",
	},
	{
		pattern: regexp.MustCompile(`\b(registry|proxy|deb)\.[a-z]+\.(org|com)\b`),
		say:     "the host of a registry: the user's own tools know theirs",
	},
	{
		pattern: regexp.MustCompile(`\b(T[O]DO|F[I]XME|X[X]X|H[A]CK|(not |un)im[p]lemented|st[u]b)\b`),
		in:      ".go .js .sql .lua",
		say:     "a mark of unfinished work: finish it, or write down in docs/ what is not there yet",
	},
	{
		pattern: regexp.MustCompile(`^(<{7} |>{7} |={7}$)`),
		say:     "a conflict that was not resolved",
	},
}

func TestWords(t *testing.T) {
	err := walk(func(path string, content []byte) error {
		if bytes.IndexByte(content, 0) >= 0 || strings.HasSuffix(path, "go.sum") {
			return nil
		}
		for i, line := range strings.Split(string(content), "\n") {
			for _, w := range words {
				if found := w.pattern.FindString(line); found != "" && w.about(path) {
					t.Errorf("%s:%d: %q: %s", path, i+1, found, w.say)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w word) about(path string) bool {
	if w.in == "" {
		return true
	}
	for _, suffix := range strings.Fields(w.in) {
		if strings.HasSuffix(path, suffix) {
			return true
		}
	}
	return false
}
