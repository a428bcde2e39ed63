//go:build linux

package shm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/buckettest"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/shm"
)

func rate(perSecond float64, capacity int64) shm.Geometry {
	return shm.Geometry{Rates: []shm.Rate{{PerSecond: perSecond, Capacity: capacity}}}
}

func TestB13_BucketContract(t *testing.T) {
	buckettest.Run(t, func(t *testing.T, perSecond float64, capacity int64, n int) (all []stint.Bucket) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "region")
		for range n {
			all = append(all, open(t, path, rate(perSecond, capacity)).Bucket(0))
		}
		return all
	})
}

func TestB13_BucketGeometry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	all := shm.Geometry{
		Slots: []int{2, 1}, Mutexes: 3,
		Rates: []shm.Rate{{PerSecond: 0.5}, {PerSecond: 1e6, Capacity: 10}},
	}
	r := open(t, path, all)
	if r.Slots(1).Usage().Max != 1 || r.Bucket(0).Usage().Capacity != 1 || r.Bucket(1).Usage().Capacity != 10 {
		t.Error("parts of the region have been mixed up")
	}
	for _, other := range []shm.Geometry{
		{Slots: []int{2, 1}, Mutexes: 3},
		{Slots: []int{2, 1}, Mutexes: 3, Rates: []shm.Rate{{PerSecond: 0.5}, {PerSecond: 1e6, Capacity: 11}}},
		{Slots: []int{2, 1}, Mutexes: 3, Rates: []shm.Rate{{PerSecond: 0.25, Capacity: 1}, {PerSecond: 1e6, Capacity: 10}}},
	} {
		if _, err := shm.Open(path, other); !errors.Is(err, shm.ErrMismatch) {
			t.Errorf("%+v: %v", other, err)
		}
	}
	for _, bad := range []shm.Rate{{}, {PerSecond: -1}, {PerSecond: 1 << 35}, {PerSecond: 1, Capacity: -1}} {
		_, err := shm.Open(path, shm.Geometry{Rates: []shm.Rate{bad}})
		if err == nil || !strings.Contains(err.Error(), "geometry.Rates[0]: ") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	info, err := shm.Inspect(path)
	if err != nil || len(info.Buckets) != 2 || info.Buckets[1].Tokens != 10 ||
		len(info.Slots) != 2 || len(info.Mutexes) != 3 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestB13_BucketOfAClosedRegion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	r := open(t, path, rate(1e-6, 1))
	l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: r.Bucket(0)})
	l.Try(1)
	waited := make(chan error)
	go func() { waited <- l.Wait(t.Context(), 1) }()
	until(t, "no caller waits", func() bool { return l.Stats().Shared.Waiting == 1 })
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; !errors.Is(err, shm.ErrClosed) {
		t.Errorf("the waiting call: %v", err)
	}
	if err := l.Wait(t.Context(), 1); !errors.Is(err, shm.ErrClosed) || l.Try(1) {
		t.Errorf("a later call: %v", err)
	}
	if s := l.Stats(); s.Shared.Err == "" || s.Queued != 0 {
		t.Errorf("%+v", s)
	}
	defer func() {
		if recover() == nil {
			t.Error("a bucket was bound twice")
		}
	}()
	stint.NewLimiter(0, stint.LimiterConfig{Bucket: r.Bucket(0)})
}

// draw takes tokens of the bucket at random, in all tiers, and prints the total after
// each.
func draw() {
	r, err := shm.Open(os.Getenv(processRegion), drawn)
	must(err)
	l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: r.Bucket(0)})
	for i := range 4 {
		go func() {
			at := l.At(stint.Lowest + stint.Priority(i*2))
			for n := int64(1); ; n = n%7 + 1 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(n)*time.Millisecond)
				if at.Wait(ctx, n) == nil {
					_, err := os.Stdout.WriteString(strings.Repeat("x", int(n)))
					must(err)
				}
				cancel()
			}
		}()
	}
	blockForever()
}

var drawn = rate(20_000, 200)

// Eight processes take tokens and are killed at random: together they never take more
// than the rate allows, and the survivors are not blocked.
func TestB13_KilledProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	lot := seeded.Rand(t)
	began := shm.Now()
	had, want := int64(0), drawn.Rates[0].Capacity
	var processes []*process
	for range 8 {
		processes = append(processes, start(t, "draw", path))
	}
	for range 40 {
		i := lot.IntN(len(processes))
		n := 1 + lot.IntN(100)
		if !processes[i].await(n) {
			t.Fatal("a process ended by itself")
		}
		had += int64(n) + processes[i].drain()
		processes[i] = start(t, "draw", path)
	}
	for _, p := range processes {
		had += p.drain()
	}
	const debt = 7
	want += (shm.Now()-began)*int64(drawn.Rates[0].PerSecond)/1e9 + 1 + debt
	if had > want {
		t.Errorf("%d tokens were taken, %d were available", had, want)
	}
	t.Logf("%d of %d tokens", had, want)

	u := open(t, path, drawn).Bucket(0).Usage()
	if u.Waiting != 0 || len(u.Waiters) != 0 {
		t.Errorf("dead processes are listed as waiting: %+v", u)
	}
}

// first starts a process that waits first in the queue, for a token that does not come.
func first(t *testing.T, path string) (*process, stint.Limiter) {
	t.Helper()
	l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: open(t, path, slowly).Bucket(0)})
	p := start(t, "first", path)
	until(t, "no caller waits", func() bool { return l.Stats().Shared.Waiting == 1 })
	return p, l
}

var slowly, never = rate(1000, 10), rate(1e-3, 10)

func firstInQueue(geometry shm.Geometry) {
	r, err := shm.Open(os.Getenv(processRegion), geometry)
	must(err)
	l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: r.Bucket(0)})
	must(l.Wait(context.Background(), 1<<40))
}

// A process that dies first in the queue does not block the others.
func TestB13_FirstInQueueDies(t *testing.T) {
	p, l := first(t, filepath.Join(t.TempDir(), "region"))
	if l.Try(1) {
		t.Error("Try took a token before a waiter")
	}
	pid := strconv.Itoa(p.cmd.Process.Pid)
	if why := l.Why(1); len(why) != 1 || why[0].Code != stint.CodeShared || !strings.Contains(why[0].By, pid) {
		t.Errorf("%+v, want process %s as the reason", why, pid)
	}
	waited := make(chan error)
	go func() { waited <- l.Wait(t.Context(), 1) }()
	until(t, "no caller waits", func() bool { return l.Stats().Shared.Waiting == 2 })
	p.kill()
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	until(t, "the dead stay in the queue", func() bool { return l.Try(1) })
}

// A process that is stopped first in the queue does not block the others once the bucket
// holds what it needs, and is in the queue again when it continues.
func TestB13_FirstInQueueIsStopped(t *testing.T) {
	p, l := first(t, filepath.Join(t.TempDir(), "region"))
	p.signal(t, syscall.SIGSTOP)
	for range 3 {
		if err := l.At(stint.Low).Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if !l.Try(0) {
		t.Error("the stopped process is still in the queue")
	}
	p.signal(t, syscall.SIGCONT)
	until(t, "the continued process is not in the queue", func() bool { return !l.Try(0) })
}

// A stopped process that needs more tokens than there are blocks the others for a second
// only.
func TestB13_FirstInQueueForManyTokensIsStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: open(t, path, never).Bucket(0)})
	if !l.Try(8) {
		t.Fatal("a full bucket was refused")
	}
	p := start(t, "first for much", path)
	until(t, "no caller waits", func() bool { return l.Stats().Shared.Waiting == 1 })
	p.signal(t, syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := l.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGCONT)
	until(t, "the continued process is not in the queue", func() bool { return !l.Try(0) })
}

// Try looks for dead and stopped processes too.
func TestB13_TryEvictsDeadAndStopped(t *testing.T) {
	for name, end := range map[string]func(p *process){
		"dead":    func(p *process) { p.kill() },
		"stopped": func(p *process) { p.signal(t, syscall.SIGSTOP) },
	} {
		t.Run(name, func(t *testing.T) {
			p, l := first(t, filepath.Join(t.TempDir(), "region"))
			end(p)
			until(t, "Try is refused for ever", func() bool { return l.Try(1) })
		})
	}
}

// A stopped process is evicted by waiters of its own tier too, while a higher tier takes
// tokens without ever waiting.
func TestB13_StoppedBesideAHigherTier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	high := stint.NewLimiter(0, stint.LimiterConfig{Bucket: open(t, path, slowly).Bucket(0)})
	p, l := first(t, path)
	p.signal(t, syscall.SIGSTOP)
	admitted := make(chan error, 1)
	go func() { admitted <- l.Wait(t.Context(), 1) }()
	for {
		select {
		case err := <-admitted:
			if err != nil {
				t.Error(err)
			}
			return
		case <-time.After(4 * time.Millisecond):
			if err := high.At(stint.High).Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestB13_BindWhileTheRegionIsClosed(t *testing.T) {
	for range 50 {
		r := open(t, filepath.Join(t.TempDir(), "region"), drawn)
		done := make(chan struct{})
		go func() {
			stint.NewLimiter(0, stint.LimiterConfig{Bucket: r.Bucket(0)})
			close(done)
		}()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		<-done
	}
}
