package dbrows_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
)

// server is a database server in memory. It does one thing at a time, at once and durably.
// Faults are those of a [connection].
type server struct {
	mu      sync.Mutex
	term    dbrows.Term
	id      *connection // that leads
	leader  queue.Leader
	until   time.Time
	rows    map[string][]byte
	leases  map[int]logged
	batches []batch // all that were made
	resigns int
	ahead   time.Duration // of its clock
}

// logged is a row of the lease log.
type logged struct {
	put     uint64
	entries []byte
}

// batch is a batch that was made.
type batch struct {
	dbrows.Term
	changes []journal.Change
}

func newServer() *server { return &server{rows: make(map[string][]byte), leases: make(map[int]logged)} }

// endLease ends the lease of the leader.
func (s *server) endLease() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Time{}
}

// set changes the server by hand.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// made returns how many batches have a change of a key.
func (s *server) made(key string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.batches {
		if slices.ContainsFunc(b.changes, func(c journal.Change) bool { return c.Key == key }) {
			n++
		}
	}
	return n
}

// The operations of a DB.
type op string

const (
	opLead   op = "lead"
	opRenew  op = "renew"
	opNow    op = "now"
	opResign op = "resign"
	opTerm   op = "term"
	opApply  op = "apply"
	opGet    op = "get"
	opScan   op = "scan"
	opPut    op = "put"
	opLeases op = "leases"
)

var errBroken = errors.New("the connection is broken")

// fault is what happens to a call.
type fault struct {
	late   time.Duration // the server makes it so late, even if the caller has left
	before error         // it is not made, and this is the answer
	after  error         // it is made, and this is the answer
	then   func()        // is called after the effect, without a lock
}

// connection is a [dbrows.DB] of one process.
type connection struct {
	*server
	tb    testing.TB
	fault func(op) fault

	lock   sync.Mutex // guards the fields below
	open   int        // calls that have not returned
	closed bool
	calls  map[op]int
	late   sync.WaitGroup // effects without a caller
}

var _ dbrows.DB = (*connection)(nil)

// connect returns a connection with faults; nil: it has none.
func (s *server) connect(tb testing.TB, faults func(op) fault) *connection {
	tb.Helper()
	if faults == nil {
		faults = func(op) fault { return fault{} }
	}
	return &connection{server: s, tb: tb, fault: faults, calls: make(map[op]int)}
}

// inTurn returns faults for the first calls of some operations. Later calls have none.
func inTurn(faults map[op][]fault) func(op) fault {
	var mu sync.Mutex
	return func(o op) (f fault) {
		mu.Lock()
		defer mu.Unlock()
		if next := faults[o]; len(next) > 0 {
			f, faults[o] = next[0], next[1:]
		}
		return f
	}
}

func (c *connection) count(o op) int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.calls[o]
}

// call makes a call, whose effect is called with the server locked.
func (c *connection) call(ctx context.Context, o op, effect func() error) error {
	_, err := ask(ctx, c, o, func() (none struct{}, err error) { return none, effect() })
	return err
}

// ask is call for an effect that has a result.
func ask[T any](ctx context.Context, c *connection, o op, effect func() (T, error)) (result T, err error) {
	c.lock.Lock()
	if c.closed {
		c.tb.Errorf("%s is called after Close", o)
	}
	c.open++
	c.calls[o]++
	c.lock.Unlock()
	defer func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		c.open--
	}()
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	f := c.fault(o)
	if f.before != nil {
		return result, f.before
	}
	run := func() (T, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return effect()
	}
	if f.late == 0 {
		result, err = run()
	} else {
		done := make(chan func() (T, error), 1)
		c.late.Add(1)
		time.AfterFunc(f.late, func() {
			defer c.late.Done()
			late, err := run()
			done <- func() (T, error) { return late, err }
		})
		select {
		case answer := <-done:
			result, err = answer()
		case <-ctx.Done():
			return result, ctx.Err()
		}
	}
	if f.then != nil {
		f.then()
	}
	if f.after != nil {
		err = f.after
	}
	return result, err
}

func (c *connection) leads(epoch uint32) bool { return c.id == c && c.term.Epoch == epoch }

func (c *connection) Lead(ctx context.Context, as queue.Leader, lease time.Duration) (dbrows.Term, error) {
	return ask(ctx, c, opLead, func() (t dbrows.Term, err error) {
		now := time.Now()
		if c.id != c {
			if c.until.After(now) {
				led := c.leader
				led.Left = c.until.Sub(now)
				return t, &queue.LedError{Leader: led}
			}
			c.term.Epoch++
			as.Since = now
			c.id, c.leader = c, as
		}
		c.until = now.Add(lease)
		return c.term, nil
	})
}

func (c *connection) Renew(ctx context.Context, epoch uint32, lease time.Duration) error {
	return c.call(ctx, opRenew, func() error {
		if !c.leads(epoch) {
			return dbrows.ErrFenced
		}
		c.until = time.Now().Add(lease)
		return nil
	})
}

func (c *connection) Now(ctx context.Context) (time.Time, error) {
	return ask(ctx, c, opNow, func() (time.Time, error) { return time.Now().Add(c.ahead), nil })
}

func (c *connection) Resign(ctx context.Context, epoch uint32) error {
	return c.call(ctx, opResign, func() error {
		if c.leads(epoch) {
			c.until = time.Time{}
			c.resigns++
		}
		return nil
	})
}

func (c *connection) Term(ctx context.Context) (dbrows.Term, error) {
	return ask(ctx, c, opTerm, func() (dbrows.Term, error) { return c.term, nil })
}

func (c *connection) Full() error { return nil }

func (c *connection) Apply(ctx context.Context, t dbrows.Term, changes []journal.Change) error {
	return c.call(ctx, opApply, func() error {
		if c.id != c || c.term != (dbrows.Term{Epoch: t.Epoch, Batch: t.Batch - 1}) {
			return errors.New("the server has another term")
		}
		for _, change := range changes {
			if change.Value == nil {
				delete(c.rows, change.Key)
			} else {
				c.rows[change.Key] = slices.Clone(change.Value)
			}
		}
		c.term = t
		c.batches = append(c.batches, batch{t, slices.Clone(changes)})
		return nil
	})
}

func (c *connection) Get(ctx context.Context, key string) ([]byte, error) {
	return ask(ctx, c, opGet, func() ([]byte, error) { return c.rows[key], nil })
}

func (c *connection) ReadKeys(ctx context.Context, keys []string, most int) ([][]byte, error) {
	return ask(ctx, c, opGet, func() (values [][]byte, err error) {
		for size := 0; len(values) < len(keys) && size < most; {
			value := c.rows[keys[len(values)]]
			values, size = append(values, value), size+len(value)
		}
		return values, nil
	})
}

// Scan makes a call for the list of keys, and one for each key.
func (c *connection) Scan(
	ctx context.Context, from, to string, down bool, fn func(key string, value []byte) bool,
) error {
	keys, err := ask(ctx, c, opScan, func() (keys []string, err error) {
		for key := range maps.Keys(c.rows) {
			if from <= key && key < to {
				keys = append(keys, key)
			}
		}
		return keys, nil
	})
	slices.Sort(keys)
	if down {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		var value []byte
		if err == nil {
			value, err = c.Get(ctx, key)
		}
		if err != nil || value != nil && !fn(key, value) {
			break
		}
	}
	return err
}

func (c *connection) PutLeases(ctx context.Context, epoch uint32, put uint64, rows []dbrows.LeaseRow) error {
	return c.call(ctx, opPut, func() error {
		if !c.leads(epoch) {
			return dbrows.ErrFenced
		}
		for _, row := range rows {
			if c.leases[row.Number].put <= put {
				c.leases[row.Number] = logged{put, slices.Clone(row.Entries)}
			}
		}
		return nil
	})
}

func (c *connection) Leases(ctx context.Context, fn func(dbrows.LeaseRow)) error {
	found, err := ask(ctx, c, opLeases, func() (found []dbrows.LeaseRow, err error) {
		for number, row := range c.leases {
			found = append(found, dbrows.LeaseRow{Number: number, Entries: row.entries})
		}
		return found, nil
	})
	for _, e := range found {
		fn(e)
	}
	return err
}

func (c *connection) Close() error {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.closed || c.open > 0 {
		c.tb.Errorf("Close with %d calls that have not returned; closed before: %t", c.open, c.closed)
	}
	c.closed = true
	return nil
}
