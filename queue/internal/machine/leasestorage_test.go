package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// leaseList is a LeaseStorage in memory that can be made to fail.
type leaseList struct {
	mu      sync.Mutex
	entries []machine.LeaseEntry // by slot, from 1
	owners  []queue.Token        // by slot; 0: the slot is free
	left    int                  // the number of slots that Reserve may still return
	puts    int                  // the number of entries that Put writes before putErr
	putErr  error
	onPut   func() // called once, before Put writes; may be nil
}

func newLeaseList() *leaseList {
	return &leaseList{entries: make([]machine.LeaseEntry, 1), owners: make([]queue.Token, 1), left: 1 << 30}
}

func (l *leaseList) Recall(fn func(slot int, e machine.LeaseEntry)) error {
	l.owners = make([]queue.Token, len(l.entries))
	for slot, e := range l.entries {
		if e.Token != 0 {
			l.owners[slot] = e.Token
			fn(slot, e)
		}
	}
	return nil
}

func (l *leaseList) Reserve(token queue.Token) (slot int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 0 {
		return 0, errDisk
	}
	l.left--
	if slot = slices.Index(l.owners[1:], 0) + 1; slot == 0 {
		slot = len(l.owners)
		l.owners, l.entries = append(l.owners, 0), append(l.entries, machine.LeaseEntry{})
	}
	l.owners[slot] = token
	return slot, nil
}

func (l *leaseList) Put(entries []machine.SlotEntry) (n int, err error) {
	if do := l.onPut; do != nil {
		l.onPut = nil
		do()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range entries {
		if l.putErr != nil {
			if l.puts == 0 {
				return i, l.putErr
			}
			l.puts--
		}
		if l.owners[e.Slot] == e.Token {
			l.entries[e.Slot] = e.LeaseEntry
		}
	}
	return len(entries), nil
}

func (l *leaseList) Free(slot int, token queue.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owners[slot] == token {
		l.owners[slot] = 0
	}
}

// crash returns the storage that the next machine reads.
func (l *leaseList) crash() *leaseList {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &leaseList{entries: slices.Clone(l.entries), left: 1 << 30}
}

// reserved returns the number of reserved slots.
func (l *leaseList) reserved() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, token := range l.owners {
		if token != 0 {
			n++
		}
	}
	return n
}

// TestC11_CloseWaitsForClaims: the lease of a worker in another process is recorded before the
// rows are closed, so the next machine knows it.
func TestC11_CloseWaitsForClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t)
		id := p.submit(1)[0]
		put := make(chan struct{})
		p.leases.onPut = func() { <-put }
		claimed := make(chan error, 1)
		go func() {
			tasks, err := p.claim(1, true)
			if err == nil && len(tasks) != 1 {
				err = fmt.Errorf("%d tasks are claimed", len(tasks))
			}
			claimed <- err
		}()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- p.Close() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("Close returns %v while a claim records its lease", err)
		default:
		}
		close(put)
		if err := errors.Join(<-claimed, <-closed); err != nil {
			t.Error(err)
		}
		p.crash()
		if task := p.task(id); task.State != queue.Running || task.Lease.Worker != "w" {
			t.Errorf("the next machine has the task %s, of worker %q", task.State, task.Lease.Worker)
		}
	})
}
