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

// limit is the number of jobs that may run at once, as it is now: from 1 to
// most. It may be used from any goroutine.
type limit struct {
	most int // what the system allows

	mu sync.Mutex
	n  int // guarded by mu
}

// set makes the limit n.
func (l *limit) set(n int, resize func(int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n = n
	l.apply(resize)
}

// change adds to the limit.
func (l *limit) change(by int, resize func(int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n += by
	l.apply(resize)
}

// apply makes the limit hold. l.mu is held.
func (l *limit) apply(resize func(int)) {
	l.n = min(max(l.n, 1), l.most)
	resize(l.n)
}

// JobsFile is a file that says how many jobs may run, and may be changed while
// they do.
type JobsFile struct {
	Path    string
	Machine jobcount.Machine
	seen    fs.FileInfo // when it was last read
	gone    int         // looks in a row that have not found it
}

// Read returns what the file says.
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

// changed reports whether the file is another than when it was last read. The
// error is that of a file that is gone, and comes once, with the second look
// that does not find it: at the first it may be that it is being replaced.
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

// lookEvery is how often the file is looked at.
const lookEvery = 500 * time.Millisecond

// watchJobsFile is the loop that follows the file.
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

// follow does what the file says, if that has changed.
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
