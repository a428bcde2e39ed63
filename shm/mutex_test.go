//go:build linux

package shm_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stintgo/stint/shm"
)

// mutex opens the region at path and returns its mutex.
func mutex(t *testing.T, path string) *shm.Mutex {
	t.Helper()
	return open(t, path, geometry).Mutex(0)
}

func lock(t *testing.T, m *shm.Mutex, want bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	abandoned, err := m.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if abandoned != want {
		t.Errorf("the lock was abandoned: %t, want %t", abandoned, want)
	}
}

func unlock(t *testing.T, m *shm.Mutex) {
	t.Helper()
	if err := m.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestD8_MutexExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	count := 0
	var all sync.WaitGroup
	for range 3 {
		m := mutex(t, path)
		for range 3 {
			all.Go(func() {
				for range 50 {
					lock(t, m, false)
					count++
					unlock(t, m)
				}
			})
		}
	}
	all.Wait()
	if count != 450 {
		t.Errorf("counted %d, want 450", count)
	}
}

func TestD8_MutexTryLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	a, b := mutex(t, path), mutex(t, path)
	if locked, abandoned := a.TryLock(); !locked || abandoned {
		t.Fatalf("a free lock: locked %t, abandoned %t", locked, abandoned)
	}
	for name, m := range map[string]*shm.Mutex{"the same process": a, "another": b} {
		if locked, _ := m.TryLock(); locked {
			t.Errorf("%s locked a locked mutex", name)
		}
	}
	unlock(t, a)
	if locked, _ := b.TryLock(); !locked {
		t.Error("a free lock was refused")
	}
	unlock(t, b)
}

func TestD8_MutexLockEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	a, b := mutex(t, path), mutex(t, path)
	lock(t, a, false)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error)
	go func() {
		_, err := b.Lock(ctx)
		failed <- err
	}()
	cancel(cause)
	if err := <-failed; !errors.Is(err, cause) {
		t.Errorf("lock ended with %v, want %v", err, cause)
	}
	unlock(t, a)
	lock(t, b, false)
	unlock(t, b)
}

func TestD8_MutexUnlockByAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	a, b := mutex(t, path), mutex(t, path)
	lock(t, a, false)
	if err := b.Unlock(); !errors.Is(err, shm.ErrNotLocked) {
		t.Errorf("another process unlocked it: %v", err)
	}
	if locked, _ := b.TryLock(); locked {
		t.Error("another process has the lock")
	}
	unlock(t, a)
	if err := a.Unlock(); !errors.Is(err, shm.ErrNotLocked) {
		t.Errorf("unlocked twice: %v", err)
	}
}

// The lock of a killed process goes to a waiter, and to a caller of TryLock; the first of
// them is informed that it was abandoned.
func TestD8_MutexOfADeadHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	m := mutex(t, path)
	for _, get := range []func(){
		func() { lock(t, m, true) },
		func() {
			until(t, "the lock of a dead process was refused", func() bool {
				locked, abandoned := m.TryLock()
				if locked && !abandoned {
					t.Error("the lock was not reported as abandoned")
				}
				return locked
			})
		},
	} {
		p := start(t, "lock", path)
		if !p.await(1) {
			t.Fatal("the process has ended")
		}
		if locked, _ := m.TryLock(); locked {
			t.Fatal("got a lock that another process holds")
		}
		p.kill()
		get()
		unlock(t, m)
		lock(t, m, false)
		unlock(t, m)
	}
}

// A call of Lock that waits when its region is closed returns ErrClosed.
func TestD8_MutexOfAClosedRegion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	a := mutex(t, path)
	lock(t, a, false)
	r := open(t, path, geometry)
	failed := make(chan error)
	go func() {
		_, err := r.Mutex(0).Lock(t.Context())
		failed <- err
	}()
	for r.Waiting() == 0 {
		runtime.Gosched()
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, shm.ErrClosed) {
		t.Errorf("lock ended with %v, want %v", err, shm.ErrClosed)
	}
	unlock(t, a)
}

// Closing the region releases the lock, and a later Unlock returns ErrClosed.
func TestD8_MutexUnlockOfAClosedRegion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	r := open(t, path, geometry)
	m := r.Mutex(0)
	lock(t, m, false)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	other := mutex(t, path)
	lock(t, other, true)
	for _, want := range []error{shm.ErrClosed, shm.ErrNotLocked} {
		if err := m.Unlock(); !errors.Is(err, want) {
			t.Errorf("unlocked: %v, want %v", err, want)
		}
	}
	if locked, _ := mutex(t, path).TryLock(); locked {
		t.Error("Unlock has released a lock that another process holds")
	}
	unlock(t, other)
}

// A caller that takes an abandoned lock while its region is being closed does not get it. The next
// holder is informed that it was abandoned.
func TestD8_MarkOfAMutexThatIsTakenWhileClosing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	m, r := mutex(t, path), open(t, path, geometry)
	for _, abandoned := range []bool{true, false} {
		if abandoned {
			dies := open(t, path, geometry)
			lock(t, dies.Mutex(0), false)
			if err := dies.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.LockWhileClosing(0); !errors.Is(err, shm.ErrClosed) {
			t.Fatalf("the lock of a region that is being closed: %v", err)
		}
		lock(t, m, abandoned)
		unlock(t, m)
	}
}

// A lock may be unlocked by another goroutine while the call of Lock that got it returns:
// what Lock reports is read before that is possible. The race detector sees an earlier
// order.
func TestD8_MutexUnlockWhileLockReturns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	m := mutex(t, path)
	for range 200 {
		r := open(t, path, geometry)
		lock(t, r.Mutex(0), false)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		next := make(chan bool)
		go func() {
			for m.Unlock() != nil {
				runtime.Gosched()
			}
			locked, abandoned := m.TryLock()
			if !locked {
				t.Error("a free lock was refused")
			}
			next <- abandoned
		}()
		lock(t, m, true)
		if <-next {
			t.Error("the lock was reported as abandoned twice")
		}
		unlock(t, m)
	}
}
