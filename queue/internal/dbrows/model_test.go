package dbrows_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue/internal/dbrows"
)

// TestC11_ProcessesTakeTheLead lets processes take the lead from each other on a server
// whose answers are lost, and which carries calls out late. At the end the server has every
// batch that was answered, once, and in the order of the answers.
func TestC11_ProcessesTakeTheLead(t *testing.T) {
	base := seeded.Seed(t)
	for i := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { takeTheLead(t, base+i) })
	}
}

const takeOver = 30 * time.Minute // the length of a history

// history is what the processes were answered.
type history struct {
	*server
	end time.Time

	lock    sync.Mutex
	random  *rand.Rand
	answers []string // keys of batches, in the order of the answers
	batches int
	leaders int
	unknown int
}

func takeTheLead(t *testing.T, seed uint64) {
	t.Helper()
	h := &history{server: newServer(), end: time.Now().Add(takeOver), random: rand.New(rand.NewPCG(seed, 0))}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for time.Now().Before(h.end) {
				h.process(t)
				time.Sleep(h.within(2 * time.Second))
			}
		})
	}
	wg.Wait()
	h.check(t, seed)
}

func (h *history) within(most time.Duration) time.Duration {
	h.lock.Lock()
	defer h.lock.Unlock()
	return 1 + time.Duration(h.random.Int64N(int64(most)))
}

func (h *history) oneIn(n int) bool { return h.within(time.Duration(n)) == 1 }

// process leads if it can, makes batches until it loses the lead or ends, and is closed.
func (h *history) process(t *testing.T) {
	t.Helper()
	var cut sync.Mutex
	until := time.Time{} // the process is cut off so long
	c := h.connect(t, func(op) (f fault) {
		cut.Lock()
		defer cut.Unlock()
		now := time.Now()
		switch {
		case now.Before(until):
			return fault{late: until.Sub(now) + h.within(time.Second)}
		case now.After(h.end):
			return f
		case h.oneIn(300):
			until = now.Add(h.within(30 * time.Second))
		}
		f.late = h.within(20 * time.Millisecond)
		switch {
		case h.oneIn(10):
			f.before = errBroken
		case h.oneIn(10):
			f.after = errBroken
		case h.oneIn(30):
			f.late = h.within(30 * time.Second)
		}
		return f
	})
	defer c.late.Wait()
	r, err := dbrows.Open(t.Context(), c, dbrows.Config{Server: "the server"})
	if err != nil {
		return
	}
	h.count(&h.leaders)
	for time.Now().Before(h.end) && !h.oneIn(100) {
		key := fmt.Sprint("k", h.count(&h.batches))
		if err := apply(r, key); err != nil {
			h.count(&h.unknown)
			if err := apply(r, key); err == nil { // the machine does not do this
				t.Errorf("a batch is made after an error")
			}
			break
		}
		h.lock.Lock()
		h.answers = append(h.answers, key)
		h.lock.Unlock()
		if h.oneIn(4) {
			time.Sleep(h.within(3 * time.Second))
		}
	}
	closes(t, r)
}

func (h *history) count(n *int) int {
	h.lock.Lock()
	defer h.lock.Unlock()
	*n++
	return *n
}

func (h *history) check(t *testing.T, seed uint64) {
	t.Helper()
	at := make(map[string]int)
	term := dbrows.Term{}
	for i, b := range h.server.batches {
		if b.Batch != term.Batch+1 || b.Epoch < term.Epoch {
			t.Errorf("seed %d: batch %v comes after %v", seed, b.Term, term)
		}
		term = b.Term
		for _, c := range b.changes {
			if _, twice := at[c.Key]; twice {
				t.Errorf("seed %d: the batch of %s was made twice", seed, c.Key)
			}
			at[c.Key] = i
		}
	}
	last := -1
	for _, key := range h.answers {
		i, ok := at[key]
		if !ok || string(h.rows[key]) != key {
			t.Errorf("seed %d: the batch of %s was answered, and is lost", seed, key)
		} else if i < last {
			t.Errorf("seed %d: the batch of %s was answered after one that was made later", seed, key)
		}
		last = max(last, i)
	}
	if h.leaders < 10 || h.unknown == 0 || len(h.answers) < 500 {
		t.Errorf("seed %d: only %d leaders, %d answers, %d errors", seed, h.leaders, len(h.answers), h.unknown)
	}
}
