package queue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// lateStore is a store whose first call of Maintain returns late, as to a process that was stopped.
type lateStore struct {
	memstore.Store
	calls atomic.Int32
	ended time.Time // the first call
	next  time.Duration
}

func (l *lateStore) Maintain(ctx context.Context, now time.Time, most int) (time.Time, error) {
	switch l.calls.Add(1) {
	case 1:
		time.Sleep(time.Minute)
		l.ended = time.Now()
		return now.Add(time.Millisecond), nil
	case 2:
		l.next = time.Since(l.ended)
	}
	return l.Store.Maintain(ctx, now, most)
}

// A process that was stopped asks for its leases before it maintains the store, also if a task is
// due meanwhile.
func TestC2_MaintenanceIsPostponed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		s := &lateStore{Store: memstore.New(memstore.Config{})}
		r.Queue = queue.New(s, queue.Config{})
		r.start()
		time.Sleep(time.Minute + 500*time.Millisecond)
		r.submit("k", queue.Options{RunAt: time.Now().Add(time.Millisecond)})
		time.Sleep(time.Minute)
		r.end()
		if s.next < time.Second {
			t.Errorf("the store was maintained %v after the stop", s.next)
		}
	})
}
