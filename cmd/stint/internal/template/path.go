package template

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrEscape is wrapped by the error of a job whose input leads outside the directory that
// a name begins with.
var ErrEscape = errors.New("the input leads out of")

// Path is [Template.String] for the name of a file to write. The file must be in the
// directory that precedes the first input in the template, as out in out/{}; if there is
// none, in the current directory. So a list of inputs from an untrusted source, with
// ../../etc/x in it, cannot write outside it. Symbolic links are not resolved: an input
// cannot create one.
func (t Template) Path(job *Job) (string, error) {
	name, err := t.String(job)
	if err != nil {
		return "", err
	}
	var home []byte
	for i := range t.parts {
		if t.parts[i].what == input {
			if err = checkInside(name, string(home)); err != nil {
				return "", err
			}
			return name, nil
		}
		if home, err = t.parts[i].appendTo(home, job, asIs); err != nil {
			return "", err
		}
	}
	return name, nil // the name has no part of an input
}

// checkInside checks that name is in the directory that before ends with.
func checkInside(name, before string) error {
	home := filepath.Clean(before[:strings.LastIndexByte(before, '/')+1])
	if below, err := filepath.Rel(home, filepath.Clean(name)); err == nil && filepath.IsLocal(below) {
		return nil
	}
	if home == "." {
		home = "the current directory"
	}
	return fmt.Errorf("%s: %w %s", name, ErrEscape, home)
}

// Differs reports whether the word differs between jobs: it has a part of the input in
// it, or the job's number. The slot alone does not count, since several jobs use it.
func (t Template) Differs() bool {
	for _, p := range t.parts {
		if p.what == input || p.what == seq {
			return true
		}
	}
	return false
}
