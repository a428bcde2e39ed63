package run

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/jobcount"
)

// limit is the number of jobs that may run at once, from 1 to most. It changes during the
// run, and is safe for concurrent use.
type limit struct {
	most int // the limit of the system

	mu sync.Mutex
	n  int // guarded by mu
}

// set sets the limit to n.
func (l *limit) set(n int, resize func(int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n = n
	l.apply(resize)
}

// change adds by to the limit.
func (l *limit) change(by int, resize func(int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += by
	l.apply(resize)
}

// apply clamps the limit and passes it to resize. The caller must hold mu.
func (l *limit) apply(resize func(int)) {
	l.n = min(max(l.n, 1), l.most)
	resize(l.n)
}

// JobsFile is a file with the number of jobs that may run. It may be changed during the
// run.
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

// watchJobsFile applies changes of the file until ctx ends.
func (r *Run) watchJobsFile(ctx context.Context) {
	f := r.cfg.JobsFile
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
		if err := r.follow(f); err != nil {
			r.cfg.Say(fmt.Sprintf("the number of jobs stays as it is: %v", err))
		}
	}
}

// follow applies the number in the file, if the file has changed.
func (r *Run) follow(f *JobsFile) error {
	changed, err := f.changed()
	if err != nil || !changed {
		return err
	}
	n, err := f.Read()
	if err == nil {
		r.limit.set(n, r.sched.Resize)
	}
	return err
}
