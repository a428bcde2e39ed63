package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/redisstore"
	"github.com/stintgo/stint/queue/storetest"
)

// prefixes numbers the stores on the shared server.
var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprint("test-", prefixes.Add(1)) }

// keys returns the keys of a store.
func keys(prefix string) []string {
	all := []string{"{" + prefix + "}:leader", "{" + prefix + "}:leases"}
	for letter := 'a'; letter <= 'z'; letter++ {
		all = append(all, fmt.Sprintf("{%s}:rows:%c", prefix, letter))
	}
	return all
}

// endLease ends the lease of the process that leads.
func endLease(t *testing.T, c *redis.Client, prefix string) {
	t.Helper()
	if err := c.HSet(t.Context(), "{"+prefix+"}:leader", "until", 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// breakable is a server whose writes are refused from one of them on.
type breakable struct {
	dbrows.DB
	limit *limit
}

type limit struct {
	mu   sync.Mutex
	left int // writes until one fails, and all after it; 0: none does
}

func (l *limit) set(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = n
}

func (l *limit) pass() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == 1 {
		return dbrows.ErrFenced
	}
	l.left = max(0, l.left-1)
	return nil
}

func (b breakable) Apply(ctx context.Context, t dbrows.Term, changes []journal.Change) error {
	if err := b.limit.pass(); err != nil {
		return err
	}
	return b.DB.Apply(ctx, t, changes)
}

func (b breakable) PutLeases(ctx context.Context, epoch uint32, put uint64, rows []dbrows.LeaseRow) error {
	if err := b.limit.pass(); err != nil {
		return err
	}
	return b.DB.PutLeases(ctx, epoch, put, rows)
}

// harness is a store whose process is replaced by another one without an end.
func harness(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	server, prefix, failing := sharedServer(t), newPrefix(), &limit{}
	raw := server.raw(t)
	t.Cleanup(func() { // after the stores
		if err := raw.Unlink(context.Background(), keys(prefix)...).Err(); err != nil {
			t.Error(err)
		}
	})
	open := func(t *testing.T) queue.Store {
		t.Helper()
		s, err := redisstore.OpenWrapped(t.Context(), "unix://"+server.socket(), redisstore.Config{
			Prefix: prefix, Lease: time.Minute, MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult,
			MaxCheckpoint: cfg.MaxCheckpoint, WatchBuffer: cfg.WatchBuffer,
		}, func(db dbrows.DB) dbrows.DB { return breakable{db, failing} })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil && !errors.Is(err, queue.ErrLed) {
				t.Error(err)
			}
		})
		return s
	}
	return storetest.Harness{
		Store: open(t), Durable: true, Remote: true,
		Reopen: func(t *testing.T) queue.Store {
			t.Helper()
			failing.set(0)
			endLease(t, raw, prefix)
			return open(t)
		},
		Break: failing.set,
	}
}

func TestStore(t *testing.T) { storetest.Run(t, harness) }

func TestModel_Store(t *testing.T) { storetest.Model(t, harness, 1000) }
