package shared

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stintgo/stint"
)

// flockLimit is a file for each slot, which the holder of the slot has locked.
type flockLimit struct {
	dir   string
	slots int
}

func openFileLocks(dir string, slots, _ int) (limit, error) { return flockLimit{dir, slots}, nil }

// caller opens the files anew: a lock belongs to an open file.
func (l flockLimit) caller() (caller, error) {
	c := &flockCaller{next: rand.IntN(l.slots)}
	for i := range l.slots {
		file, err := os.OpenFile(filepath.Join(l.dir, fmt.Sprint("slot-", i)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, file)
	}
	return c, nil
}

type flockCaller struct {
	files []*os.File
	next  int // the slot that it has, or had last
}

// acquire tries all files, and waits for one of them if all are locked: flock cannot
// wait for the first of several that is unlocked.
func (c *flockCaller) acquire(stint.Priority) error {
	for range c.files {
		err := flock(c.files[c.next], syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		c.next = (c.next + 1) % len(c.files)
	}
	return flock(c.files[c.next], syscall.LOCK_EX)
}

func (c *flockCaller) release() error { return flock(c.files[c.next], syscall.LOCK_UN) }

func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
