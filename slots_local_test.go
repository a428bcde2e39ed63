package stint_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// The slots of a scheduler keep the contract as well: several schedulers on top of
// one, in the same process.
func TestSlots_LocalContract(t *testing.T) {
	slotstest.Run(t, func(_ *testing.T, limit, n int) (all []stint.Slots) {
		pool := &localPool{slots: stint.New(limit, stint.Config{}), limit: limit}
		for i := range n {
			l := &local{pool: pool, name: strconv.Itoa(i), held: map[stint.Grant]*stint.Permit{}}
			pool.members = append(pool.members, l)
			all = append(all, l)
		}
		return all
	})
}

type localPool struct {
	slots stint.Scheduler
	limit int

	mu      sync.Mutex
	last    stint.Grant
	members []*local
}

// local is a participant. While callers wait, it waits for one slot on behalf of all,
// keeps it until it is asked for, and notifies.
type local struct {
	pool   *localPool
	name   string
	notify func()

	// Guarded by the pool's mu.
	held    map[stint.Grant]*stint.Permit
	ready   permits
	waiting int
	tier    stint.Priority
	stop    context.CancelFunc // of the wait, nil if there is none
}

func (l *local) Bind(notify func(), _ func(stint.Grant, error)) { l.notify = notify }

func (l *local) TryAcquire(tier stint.Priority) (stint.Grant, error) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	var permit *stint.Permit
	if len(l.ready) > 0 {
		permit, l.ready = l.ready[0], l.ready[1:]
		l.waitLocked()
	} else {
		p, ok := l.pool.slots.At(tier).TryAcquire(context.Background())
		if !ok {
			return 0, stint.ErrNoSlot
		}
		permit = &p
	}
	l.pool.last++
	l.held[l.pool.last] = permit
	return l.pool.last, nil
}

func (l *local) Release(grant stint.Grant) {
	l.pool.mu.Lock()
	permit := l.held[grant]
	delete(l.held, grant)
	l.pool.mu.Unlock()
	permit.Release()
}

func (l *local) Want(tier stint.Priority, waiting int) {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if l.stop != nil && (waiting == 0 || tier != l.tier) {
		l.stop()
		l.stop = nil
	}
	l.tier, l.waiting = tier, waiting
	if waiting == 0 {
		l.ready.release()
		l.ready = nil
	}
	l.waitLocked()
}

func (l *local) waitLocked() {
	if l.waiting == 0 || l.stop != nil || len(l.ready) > 0 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	at := l.pool.slots.At(l.tier)
	go func() {
		if p, err := at.Acquire(ctx); err == nil {
			l.arrive(ctx, &p)
		}
	}()
}

// arrive keeps the permit of a slot that has come, unless no caller waits any more.
func (l *local) arrive(ctx context.Context, permit *stint.Permit) {
	l.pool.mu.Lock()
	if ctx.Err() != nil {
		l.pool.mu.Unlock()
		permit.Release()
		return
	}
	l.stop()
	l.stop = nil
	l.ready = append(l.ready, permit)
	l.pool.mu.Unlock()
	l.notify()
}

func (l *local) Usage() stint.Usage {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	u := stint.Usage{Max: l.pool.limit}
	for _, m := range l.pool.members {
		u.Running += len(m.held)
		u.Waiting += m.waiting
		u.Holders = append(u.Holders, stint.Holder{Name: m.name, Slots: len(m.held), Waiting: m.waiting})
	}
	return u
}
