package cluster_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/machine"
)

// simDB is the rows of a group on a database in memory, with the leases of the real ones.
type simDB struct {
	random *lockedRand

	mu     sync.Mutex // guards the fields below
	term   dbrows.Term
	id     *simConn // that leads
	leader queue.Leader
	until  time.Time
	rows   map[string][]byte
	reads  int // calls of Lead that found another leader
	stores []*simStore
}

// lockedRand is a source of random numbers for several goroutines.
type lockedRand struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (l *lockedRand) intN(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.IntN(n)
}

// simConn is a connection of a host to the database.
type simConn struct {
	*simDB
	cut *atomic.Bool // of the host: no call arrives
}

// errCut is the error of a call that does not arrive, or whose answer does not.
var errCut = errors.New("the host is cut off")

// call makes a call, which takes up to 4 ms.
func (c *simConn) call(ctx context.Context, effect func() error) error {
	wait := time.NewTimer(time.Duration(1+c.random.intN(4)) * time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.cut.Load() {
		<-ctx.Done()
		return errCut
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return effect()
}

func (c *simConn) leads(epoch uint32) bool { return c.id == c && c.term.Epoch == epoch }

func (c *simConn) Lead(ctx context.Context, as queue.Leader, lease time.Duration) (t dbrows.Term, err error) {
	err = c.call(ctx, func() error {
		now := time.Now()
		if c.id != c {
			if c.until.After(now) {
				c.reads++
				led := c.leader
				led.Left = c.until.Sub(now)
				return &queue.LedError{Leader: led}
			}
			c.term.Epoch++
			as.Since = now
			c.id, c.leader = c, as
		}
		c.until = now.Add(lease)
		t = c.term
		return nil
	})
	return t, err
}

func (c *simConn) Renew(ctx context.Context, epoch uint32, lease time.Duration) error {
	return c.call(ctx, func() error {
		if !c.leads(epoch) {
			return dbrows.ErrFenced
		}
		c.until = time.Now().Add(lease)
		return nil
	})
}

func (c *simConn) Now(ctx context.Context) (now time.Time, err error) {
	err = c.call(ctx, func() error {
		now = time.Now()
		return nil
	})
	return now, err
}

func (c *simConn) Resign(ctx context.Context, epoch uint32) error {
	return c.call(ctx, func() error {
		if c.leads(epoch) {
			c.until = time.Time{}
		}
		return nil
	})
}

func (c *simConn) Term(ctx context.Context) (t dbrows.Term, err error) {
	err = c.call(ctx, func() error {
		t = c.term
		return nil
	})
	return t, err
}

func (c *simConn) Full() error { return nil }

func (c *simConn) Apply(ctx context.Context, t dbrows.Term, changes []journal.Change) error {
	return c.call(ctx, func() error {
		if c.id != c || c.term.Epoch != t.Epoch {
			return dbrows.ErrFenced
		}
		if c.term.Batch != t.Batch-1 {
			return errors.New("the server has another batch")
		}
		for _, change := range changes {
			if change.Value == nil {
				delete(c.rows, change.Key)
			} else {
				c.rows[change.Key] = slices.Clone(change.Value)
			}
		}
		c.term.Batch = t.Batch
		return nil
	})
}

func (c *simConn) Get(ctx context.Context, key string) (value []byte, err error) {
	err = c.call(ctx, func() error {
		value = c.rows[key]
		return nil
	})
	return value, err
}

func (c *simConn) ReadKeys(ctx context.Context, keys []string, most int) (values [][]byte, err error) {
	err = c.call(ctx, func() error {
		for size := 0; len(values) < len(keys) && size < most; {
			value := c.rows[keys[len(values)]]
			values, size = append(values, value), size+len(value)
		}
		return nil
	})
	return values, err
}

func (c *simConn) Scan(
	ctx context.Context, from, to string, down bool, fn func(key string, value []byte) bool,
) error {
	found := make(map[string][]byte)
	var keys []string
	err := c.call(ctx, func() error {
		for key, value := range c.rows {
			if from <= key && key < to {
				keys, found[key] = append(keys, key), value
			}
		}
		return nil
	})
	slices.Sort(keys)
	if down {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		if err != nil || !fn(key, found[key]) {
			break
		}
	}
	return err
}

func (c *simConn) PutLeases(ctx context.Context, epoch uint32, _ uint64, _ []dbrows.LeaseRow) error {
	return c.call(ctx, func() error {
		if !c.leads(epoch) {
			return dbrows.ErrFenced
		}
		return nil // no task is claimed
	})
}

func (c *simConn) Leases(ctx context.Context, _ func(dbrows.LeaseRow)) error {
	return c.call(ctx, func() error { return nil })
}

func (c *simConn) Close() error { return nil }

// simStore is a store of a group that a host has opened to lead it.
type simStore struct {
	*machine.Machine
	*dbrows.Rows
	at *simHost
}

func (s *simStore) Close() error {
	s.GiveUpSoon()
	return s.Machine.Close()
}

// open opens the store at a host.
func (d *simDB) open(ctx context.Context, h *simHost, self queue.Leader) (*simStore, error) {
	r, err := dbrows.Open(ctx, &simConn{d, &h.cut}, dbrows.Config{Server: "the database", Leader: self})
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, r.GiveUp)
	m, err := machine.Open(r, machine.Config{Epoch: r.Epoch(), Room: r.Room, Stalled: r.Stalled, Leases: r.LeaseLog()})
	stop()
	if err != nil {
		_ = r.Close() //nolint:contextcheck // Close has no context
		return nil, err
	}
	r.Opened()
	s := &simStore{m, r, h}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stores = append(d.stores, s)
	return s, nil
}

// leading returns the stores whose lease has not ended.
func (d *simDB) leading() (found []*simStore) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stores = slices.DeleteFunc(d.stores, func(s *simStore) bool {
		select {
		case <-s.Lost():
			return true
		default:
			return !s.Leads() && s.at.closed.Load()
		}
	})
	for _, s := range d.stores {
		if s.Leads() {
			found = append(found, s)
		}
	}
	return found
}
