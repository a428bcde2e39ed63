//go:build linux

package shm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/shm"
)

// waits waits for the only slot of a region through r. Its answer is the error of
// Acquire.
func waits(t *testing.T, r *shm.Region) *pending {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w := goAcquire(ctx, stint.New(1, stint.Config{Slots: r.Slots(0)}))
	until(t, "no caller waits", func() bool { return r.Waiting() == 1 })
	return w
}

// holdOne starts a process that holds the only slot of a region.
func holdOne(t *testing.T, path string) *process {
	t.Helper()
	p := start(t, "hold one", path)
	if !p.await(1) {
		t.Fatal("the process has ended")
	}
	return p
}

// recoverFrom kills a process that holds the only slot after this one has waited for
// it for a while, and returns how long it took to recover the slot.
func recoverFrom(t *testing.T, r *shm.Region, path string, while time.Duration) time.Duration {
	t.Helper()
	p := holdOne(t, path)
	waiter := waits(t, r)
	began := shm.Now()
	until(t, "the clock does not advance", func() bool { return shm.Now()-began > int64(while) })
	killed := shm.Now()
	_ = p.cmd.Process.Kill()
	if err := <-waiter.answer; err != nil {
		t.Fatalf("the slot of a dead process is not recovered: %v", err)
	}
	took := time.Duration(shm.Now() - killed)
	waiter.permit.Release()
	p.kill()
	return took
}

// The slot of a killed process is recovered, and the log has the times: by doorbells
// alone, since the kernel has released the life lock before one rings; by sweeps alone,
// as on kernels without exit notification; and by both, as usual.
func TestB8_Recovery(t *testing.T) {
	for name, set := range map[string]func(r *shm.Region){
		"doorbells": (*shm.Region).NeverSweep,
		"sweeps":    func(r *shm.Region) { r.NeverRing(errors.ErrUnsupported) },
		"both":      func(*shm.Region) {},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "region")
			lot := seeded.Rand(t)
			n := kills(t) / 20
			took := make(chan time.Duration, n)
			for range n {
				r := open(t, path, one)
				set(r)
				took <- recoverFrom(t, r, path, time.Duration(lot.IntN(20))*time.Millisecond)
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			close(took)
			logTimes(t, took)
		})
	}
}

// A PID that belongs to another process does not keep a slot of a dead process, nor is a
// slot of a living process recovered when that other process ends.
func TestB8_UnrelatedPID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	other := holdOne(t, filepath.Join(t.TempDir(), "other"))
	p := start(t, "sign", path)
	p.send(t, strconv.Itoa(other.cmd.Process.Pid))
	if !p.await(1) {
		t.Fatal("the process has ended")
	}
	r := open(t, path, one)
	installed, rung := r.Doorbells()
	number := other.cmd.Process.Pid
	answer := waits(t, r).answer
	until(t, "there is no doorbell", func() bool { return installed(number) > 0 })
	other.kill()
	until(t, "the doorbell did not ring", func() bool { return rung(number) > 0 })
	select {
	case err := <-answer:
		t.Errorf("the slot of a living process was recovered: %v", err)
	default:
	}
	p.kill()
	if err := <-answer; err != nil {
		t.Errorf("the slot of a dead process is not recovered: %v", err)
	}

	p = start(t, "sign", path)
	p.send(t, strconv.Itoa(os.Getpid()))
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if !p.await(1) {
		t.Fatal("the process has ended")
	}
	answer = waits(t, open(t, path, one)).answer
	p.kill()
	if err := <-answer; err != nil {
		t.Errorf("the slot of a dead process is not recovered: %v", err)
	}
}

// When the last wait ends no doorbell is left, whether it ended with the slot, with its
// context, or because the region was closed.
func TestB8_DoorbellsAreRemoved(t *testing.T) {
	for name, end := range map[string]func(held *stint.Permit, waiter *shm.Region, cancel func()) (answer error){
		"served":   func(held *stint.Permit, _ *shm.Region, _ func()) error { held.Release(); return nil },
		"canceled": func(_ *stint.Permit, _ *shm.Region, cancel func()) error { cancel(); return context.Canceled },
		"closed":   func(_ *stint.Permit, waiter *shm.Region, _ func()) error { waiter.Close(); return shm.ErrClosed },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "region")
			held := mustTry(t, stint.New(1, stint.Config{Slots: punctual(t, path, one)}))
			fds, goroutines := doorbells(t), runtime.NumGoroutine()
			r := open(t, path, one)
			s := stint.New(1, stint.Config{Slots: r.Slots(0)})
			ctx, cancel := context.WithCancel(t.Context())
			answer := goAcquire(ctx, s).answer
			until(t, "there is no doorbell", func() bool { return doorbells(t) == fds+1 })
			want := end(held, r, cancel)
			if err := <-answer; !errors.Is(err, want) {
				t.Errorf("the wait ended with %v, want %v", err, want)
			}
			cancel()
			until(t, fmt.Sprintf("%d doorbells and %d goroutines before", fds, goroutines), func() bool {
				return doorbells(t) == fds && runtime.NumGoroutine() <= goroutines
			})
		})
	}
}

// doorbells returns how many pidfds of itself this process has; there are such if one of
// its regions holds what another one waits for. It does not count pidfds of started
// processes, which package os uses.
func doorbells(t *testing.T) (n int) {
	t.Helper()
	const dir = "/proc/self/fdinfo"
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	self := fmt.Sprintf("Pid:\t%d\n", os.Getpid())
	for _, fd := range all {
		if info, err := os.ReadFile(filepath.Join(dir, fd.Name())); err == nil && strings.Contains(string(info), self) {
			n++
		}
	}
	return n
}
