package run

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/jobcount"
)

// JobsFile is a file with the number of jobs that may run at once. The file may be changed
// during the run.
type JobsFile struct {
	Path    string
	Machine jobcount.Machine
	seen    fs.FileInfo // at the last read
	gone    int         // consecutive checks without the file
}

// Read returns the number in the file.
func (f *JobsFile) Read() (int, error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return 0, err
	}
	f.seen = info
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return 0, err
	}
	n, err := jobcount.Parse(string(text), f.Machine)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", f.Path, err)
	}
	return n, nil
}

// changed reports whether the file has changed since the last read. If the file is
// missing, only the second check in a row returns an error: at the first the file may be
// in the middle of being replaced.
func (f *JobsFile) changed() (bool, error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		if f.gone++; f.gone != 2 {
			err = nil
		}
		return false, err
	}
	f.gone = 0
	return f.seen == nil || !os.SameFile(f.seen, info) || info.Size() != f.seen.Size() ||
		!info.ModTime().Equal(f.seen.ModTime()), nil
}

// lookEvery is the interval between two checks of the file.
const lookEvery = 500 * time.Millisecond

// watch calls set with the new number after each change of the file, until ctx ends. It
// reports errors to say. A nil JobsFile never changes.
func (f *JobsFile) watch(ctx context.Context, set func(int), say func(string)) {
	if f == nil {
		return
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := f.follow(set); err != nil {
			say(fmt.Sprintf("the number of jobs stays as it is: %v", err))
		}
	}
}

// follow calls set with the number in the file, if the file has changed.
func (f *JobsFile) follow(set func(int)) error {
	changed, err := f.changed()
	if err != nil || !changed {
		return err
	}
	n, err := f.Read()
	if err == nil {
		set(n)
	}
	return err
}
