//go:build linux

package shm_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/shm"
)

// closesFirst closes the region after the scheduler has been refused a slot, and
// before it calls Want.
type closesFirst struct {
	*shm.Slots
	close func()
}

func (c *closesFirst) Want(tier stint.Priority, waiting int) {
	if waiting > 0 {
		go c.close()
		for {
			if _, err := c.TryAcquire(tier); errors.Is(err, shm.ErrClosed) {
				break
			}
		}
	}
	c.Slots.Want(tier, waiting)
}

// After Close no goroutine of the region runs and no doorbell is left, also if the last
// waiter has left about one period before.
func TestB8_CloseWaitsForTheGoroutine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	mustTry(t, stint.New(1, stint.Config{Slots: open(t, path, one).Slots(0)}))
	lot := seeded.Rand(t)
	for range 50 {
		r := open(t, path, one)
		up := r.SlowDoorbells()
		slots := r.Slots(0)
		slots.Bind(func() {}, nil)
		slots.Want(stint.Normal, 1)
		until(t, "there is no watcher", func() bool { return up.Load() == 1 })
		slots.Want(stint.Normal, 0)
		for ended := shm.Now() + lot.Int64N(int64(20*time.Millisecond)); shm.Now() < ended; {
			runtime.Gosched()
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if n := up.Load(); n > 0 {
			t.Fatalf("%d doorbells are left", n)
		}
	}
}

// A caller that begins to wait while the region is being closed gets ErrClosed, and does
// not wait for ever.
func TestB8_CloseBeforeWaiting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	holder := punctual(t, path, one)
	holder.Bind(func() {}, nil)
	if _, err := holder.TryAcquire(stint.Normal); err != nil {
		t.Fatal(err)
	}
	r := open(t, path, one)
	s := stint.New(1, stint.Config{Slots: &closesFirst{r.Slots(0), func() { r.Close() }}})
	answer := goAcquire(t.Context(), s).answer
	var got error
	until(t, "it waits for ever", func() bool {
		select {
		case got = <-answer:
			return true
		default:
			return false
		}
	})
	if !errors.Is(got, shm.ErrClosed) {
		t.Errorf("the wait ended with %v, want %v", got, shm.ErrClosed)
	}
}

// A slot cannot be taken from a region that is being closed.
func TestB8_CloseWhileTaking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	open(t, path, one)
	for range 300 {
		r := open(t, path, one)
		slots := r.Slots(0)
		slots.Bind(func() {}, nil)
		begun, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for n := 0; ; n++ {
				grant, err := slots.TryAcquire(stint.Normal)
				if err != nil {
					return
				}
				slots.Release(grant)
				if n == 100 {
					close(begun)
				}
			}
		}()
		<-begun
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		<-done
		if h := inspect(t, path).Slots[0].Holders; len(h) > 0 {
			t.Fatalf("a region that is closed holds %+v", h)
		}
	}
}
