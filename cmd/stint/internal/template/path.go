package template

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrEscape is wrapped by the error of a job whose input leads out of the
// directory that a name begins with.
var ErrEscape = errors.New("the input leads out of")

// Path is [Template.String] for the name of a file to write. The directory that
// the template has before its first input, as out for out/{}, is where the file
// has to be, whatever the input says; the current directory, if it has none. So a
// list from elsewhere, with ../../etc/x in it, writes nothing beside it. Symbolic
// links are not followed: an input cannot make one.
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
	return name, nil // no input has a part in it
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

// Differs reports whether the word is a name for each job: one with a part of
// the input in it, or the job's number. A slot has many jobs.
func (t Template) Differs() bool {
	for _, p := range t.parts {
		if p.what == input || p.what == seq {
			return true
		}
	}
	return false
}
