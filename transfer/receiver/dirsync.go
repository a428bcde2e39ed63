package receiver

import (
	"os"
	"sync"
)

// dirSync makes the names in a directory survive a loss of power. One sync serves all callers that
// came before it began: those that come while one runs share the next. It is safe for concurrent use.
type dirSync struct {
	disk disk
	dir  *os.File      // open until close, so that a sync is one call of the system
	turn chan struct{} // of capacity 1: full while a sync runs

	mu   sync.Mutex
	next *sharedSync // the sync that has not begun; nil if nobody waits for one
}

// sharedSync is a sync that several callers wait for.
type sharedSync struct {
	ended chan struct{}
	err   error // may be read when ended is closed
}

func openDirSync(disk disk, name string) (*dirSync, error) {
	dir, err := os.Open(name)
	return &dirSync{disk: disk, dir: dir, turn: make(chan struct{}, 1)}, err
}

// sync returns when a sync of the directory has ended that began after the call, with its error.
func (d *dirSync) sync() error {
	d.mu.Lock()
	s, first := d.next, d.next == nil
	if first {
		s = &sharedSync{ended: make(chan struct{})}
		d.next = s
	}
	d.mu.Unlock()
	if !first {
		<-s.ended
		return s.err
	}
	d.turn <- struct{}{}
	d.mu.Lock()
	d.next = nil // a name that is made from now on may come too late for this sync
	d.mu.Unlock()
	s.err = d.disk.sync(d.dir)
	<-d.turn
	close(s.ended)
	return s.err
}

func (d *dirSync) close() error { return d.dir.Close() }
