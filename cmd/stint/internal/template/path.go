package template

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrEscape is wrapped by the error of a job whose input leads out of the
// directory that a name begins with.
var ErrEscape = errors.New("the input leads out of the directory")

// Path is [Template.String] for the name of a file to write. Where the word
// begins with a directory, as out/{} does, the name has to be in it, whatever
// the input says: a list from elsewhere, with ../../etc/x in it, writes nothing
// beside it. A word that begins with a placeholder leaves the place to the
// input. Symbolic links are not looked at: whoever can make those there needs
// no such list.
func (t Template) Path(job *Job) (string, error) {
	name, err := t.String(job)
	if err != nil || len(t.parts) == 0 || t.parts[0].what != literal {
		return name, err
	}
	begin := t.parts[0].text
	home := begin[:strings.LastIndexByte(begin, '/')+1]
	if home == "" {
		return name, nil
	}
	if below, err := filepath.Rel(home, name); err != nil || !filepath.IsLocal(below) {
		return "", fmt.Errorf("%s: %w %s; {/} is its last part alone", name, ErrEscape, home)
	}
	return name, nil
}
