package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
)

func concurrentCases() []testCase {
	return []testCase{{"C6_ManyClients", Config{}, manyClients}}
}

// The clients share a queue, its limits and its keys, so that they compete. Leases are
// short, so that some expire during the test.
const (
	clients      = 64
	clientCalls  = 40
	clientsMax   = 24
	clientsOfKey = 6
	clientLease  = 40 * time.Millisecond
)

// manyClients runs 64 clients that make random calls at the same time, and then checks
// that the answers are linearizable; see [history.check].
func manyClients(c *trial) {
	rnd := seeded.Rand(c.T)
	c.configure(queue.Settings{Max: clientsMax, PerKey: clientsOfKey})
	h := &history{start: c.now, unique: make(map[string][]answered)}
	var wg sync.WaitGroup
	for i := range clients {
		cl := &client{c, h, fmt.Sprint("client-", i), rand.New(rand.NewPCG(rnd.Uint64(), 0)), nil}
		wg.Go(func() {
			for range clientCalls {
				if err := cl.call(); err != nil {
					c.Errorf("%s: %v", cl.name, err)
					return
				}
			}
		})
	}
	wg.Wait()
	c.now = h.now()
	c.Logf("%d tasks, %d leases, %d outcomes", len(h.accepted), len(h.claims), len(h.settles))
	if err := h.check(c.find(queue.Filter{})); err != nil {
		c.Error(err)
	}
}

// history records the calls of the clients and their answers. Calls and returns are
// numbered by one counter, which shows whether one call returned before another began.
type history struct {
	start time.Time
	clock atomic.Int64

	mu       sync.Mutex // guards all below
	claims   []claimed
	settles  []settled
	unique   map[string][]answered // submits by key
	accepted []queue.ID
}

type answered struct {
	called, returned int64
	queue.Receipt
}

type claimed struct {
	called, returned int64
	queue.Task
}

type settled struct {
	called, returned int64
	queue.Outcome
	stale bool
}

// now returns a time that advances with every call.
func (h *history) now() time.Time {
	return h.start.Add(time.Duration(h.clock.Load()) * 100 * time.Microsecond)
}

// client is a user of the store in manyClients.
type client struct {
	*trial
	h     *history
	name  string
	rnd   *rand.Rand
	tasks []queue.Task // claimed by this client, including those it has lost
}

// call makes one random call.
func (cl *client) call() error {
	switch n := cl.rnd.IntN(100); {
	case n < 25:
		return cl.submits()
	case n < 55:
		return cl.claims()
	case n < 90:
		return cl.settles()
	case n < 94:
		return cl.heartbeats()
	default:
		_, err := cl.Store.Maintain(cl.Context(), cl.h.now(), 100)
		return err
	}
}

func (cl *client) submits() error {
	t := cl.fresh(queue.Options{Key: fmt.Sprint("key-", cl.rnd.IntN(6)), MaxCrashes: 1000, MaxAttempts: 1000})
	if cl.rnd.IntN(2) == 0 {
		t.Unique = fmt.Sprint("unique-", cl.rnd.IntN(40))
	}
	called := cl.h.clock.Add(1)
	receipts, err := cl.Store.Submit(cl.Context(), cl.h.now(), []queue.NewTask{t})
	if err != nil {
		return err
	}
	cl.h.mu.Lock()
	defer cl.h.mu.Unlock()
	if a := (answered{called, cl.h.clock.Add(1), receipts[0]}); t.Unique != "" {
		cl.h.unique[t.Unique] = append(cl.h.unique[t.Unique], a)
	} else if a.Existing || a.ID != t.ID {
		return fmt.Errorf("the receipt of task %s is %+v", t.ID, a.Receipt)
	}
	if !receipts[0].Existing {
		cl.h.accepted = append(cl.h.accepted, t.ID)
	}
	return nil
}

func (cl *client) claims() error {
	q := queue.Claim{Worker: cl.name, Kinds: []string{kind}, Max: 1 + cl.rnd.IntN(4), Lease: clientLease}
	called := cl.h.clock.Add(1)
	got, err := cl.Store.Claim(cl.Context(), cl.h.now(), q)
	if err != nil {
		return err
	}
	cl.h.mu.Lock()
	defer cl.h.mu.Unlock()
	returned := cl.h.clock.Add(1)
	for _, t := range got.Tasks {
		cl.h.claims = append(cl.h.claims, claimed{called, returned, t})
	}
	cl.tasks = append(cl.tasks, got.Tasks...)
	return nil
}

// settles settles a recently claimed task, whose lease the client may have lost.
func (cl *client) settles() error {
	if len(cl.tasks) == 0 {
		return nil
	}
	t := cl.tasks[len(cl.tasks)-1-cl.rnd.IntN(min(3, len(cl.tasks)))]
	on := []queue.OutcomeKind{queue.OutcomeSuccess, queue.OutcomeFailure, queue.OutcomeRelease}[cl.rnd.IntN(3)]
	o := queue.Outcome{ID: t.ID, Token: t.Lease.Token, Kind: on}
	called := cl.h.clock.Add(1)
	answers, err := cl.Store.Settle(cl.Context(), cl.h.now(), []queue.Outcome{o})
	if err != nil {
		return err
	}
	if answers[0] != nil && !errors.Is(answers[0], queue.ErrStale) {
		return answers[0]
	}
	cl.h.mu.Lock()
	defer cl.h.mu.Unlock()
	cl.h.settles = append(cl.h.settles, settled{called, cl.h.clock.Add(1), o, answers[0] != nil})
	return nil
}

func (cl *client) heartbeats() error {
	var heartbeats []queue.Heartbeat
	for _, t := range cl.tasks {
		heartbeats = append(heartbeats, queue.Heartbeat{ID: t.ID, Token: t.Lease.Token, Lease: clientLease})
	}
	cl.h.clock.Add(1)
	_, err := cl.Store.Heartbeat(cl.Context(), cl.h.now(), queue.Worker{Name: cl.name}, heartbeats)
	return err
}
