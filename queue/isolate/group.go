//go:build unix

package isolate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/queue"
)

// program describes the first process of a group.
type program struct {
	path  string
	args  []string
	env   []string // added to that of this process
	dir   string
	stdin *os.File
	extra []*os.File // its descriptors from 3 on
	// stop orders the group to end. It is called at most once, and must not block.
	stop func(p *proc.Process, why error)
}

// group is the processes of an attempt: the first one, and all its descendants.
type group struct {
	cfg     *Config
	timeout time.Duration // the task's own; 0 is none
	p       *proc.Process
	cell    *cell
	after   time.Duration // the limit that was exceeded if why is LimitTime; set before why

	killed sync.Once
	dead   chan struct{} // closed when SIGKILL has been sent to all

	mu   sync.Mutex
	why  Limit // the first reason to end the group; guarded by mu
	used int64 // bytes of memory in use if why is LimitMemory; guarded by mu
}

// run runs a program and returns when its group has ended. The error is an [*ExitError].
// If the program could not be started, the exit is nil and the error is another one: a
// [queue.Shortage] if this process lacks a resource.
func (c *Config) run(ctx context.Context, a *queue.Attempt, pr *program) (*Exit, error) {
	var log io.WriteCloser
	if c.Log != nil {
		var err error
		if log, err = c.Log(ctx, &a.Task); err != nil {
			return nil, attribute(fmt.Errorf("isolate: open the log of the output: %w", err))
		}
	}
	out, end, err := newOutput(log, c.Output)
	if err != nil {
		return nil, attribute(err)
	}
	defer out.close()
	g, err := c.start(ctx, pr, end)
	if err != nil {
		out.abandon()
		return nil, attribute(err)
	}
	defer g.cell.release(g)
	a.Started()
	g.timeout = a.Timeout
	out.begin()
	exit := g.wait(ctx, pr.stop)
	out.finish()
	exit.Output, exit.Lost = out.sum()
	return &exit, g.attemptError(ctx, exit, string(out.shown.bytes()))
}

// start starts the program. end is the program's end of the output; start closes it.
func (c *Config) start(ctx context.Context, pr *program, end *os.File) (*group, error) {
	defer func() { _ = end.Close() }() // this process has not written to it
	cell, env, err := groups.reserve()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // opening the log may have taken long
		cell.release(nil)
		return nil, fmt.Errorf("isolate: not started: %w", context.Cause(ctx))
	}
	p, err := startProcess(&proc.Spec{
		Path: pr.path, Args: pr.args, Env: proc.Merge(os.Environ(), pr.env, env), Dir: pr.dir,
		Files: [3]*os.File{pr.stdin, end, end}, Extra: pr.extra,
		Group: cell.group, Watched: cell.group != nil, GiveUp: atOnce,
	})
	if err != nil {
		cell.release(nil)
		return nil, &startError{err}
	}
	g := &group{cfg: c, p: p, cell: cell, dead: make(chan struct{})}
	cell.register(g)
	return g, nil
}

// startProcess is proc.Start; tests replace it.
var startProcess = proc.Start //nolint:gochecknoglobals // a seam for tests

// atOnce is closed, so that a start does not wait for room for a process. The queue waits
// instead: it keeps the slot meanwhile, and other workers can claim the task.
var atOnce = func() <-chan struct{} { //nolint:gochecknoglobals // a constant
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// startError wraps the error of the start of a program.
type startError struct{ err error }

func (e *startError) Error() string { return "isolate: " + e.err.Error() }

func (e *startError) Unwrap() error { return e.err }

// wait ends the group when ctx ends or a limit is exceeded, and returns when no process
// of it is left.
func (g *group) wait(ctx context.Context, stop func(*proc.Process, error)) Exit {
	forget := monitor.limit(g, g.cfg.Memory)
	defer forget()
	ended := make(chan struct{})
	var ending sync.WaitGroup
	ending.Go(func() { g.endWhen(ctx, stop, ended) })
	status := g.p.Wait(func() { g.sweep() }, nil)
	close(ended)
	ending.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return Exit{Status: status.Exit, Signal: status.Signal, Limit: g.why}
}

// endWhen orders the group to end when ctx ends or its time limit is exceeded, and kills
// it after the grace period. It returns when ended is closed.
func (g *group) endWhen(ctx context.Context, stop func(*proc.Process, error), ended <-chan struct{}) {
	var over <-chan time.Time
	if g.cfg.Time > 0 {
		timer := time.NewTimer(g.cfg.Time)
		defer timer.Stop()
		over = timer.C
	}
	var why Limit
	var reason error
	select {
	case <-ended:
		return
	case <-over:
		why, reason, g.after = LimitTime, errTime, g.cfg.Time
	case <-ctx.Done():
		why, reason = LimitTask, context.Cause(ctx)
		if g.timeout > 0 && errors.Is(reason, context.DeadlineExceeded) {
			why, g.after = LimitTime, g.timeout
		}
	}
	if !g.claim(why, 0) {
		return
	}
	if errors.Is(reason, queue.ErrStale) { // another worker may be running the task
		g.kill()
		return
	}
	grace := time.After(g.cfg.Grace)
	stop(g.p, reason)
	if why == LimitTime { // the lease may be lost during the grace period
		select {
		case <-ended:
			return
		case <-grace:
			g.kill()
			return
		case <-ctx.Done():
		}
		if errors.Is(context.Cause(ctx), queue.ErrStale) {
			g.kill()
			return
		}
	}
	select {
	case <-ended:
	case <-grace:
		g.kill()
	}
}

// claim records why the group is ended, and reports whether this is the first reason. It
// records none if the first process has already ended by itself.
func (g *group) claim(why Limit, used int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why != "" || g.p.Ended() {
		return false
	}
	g.why, g.used = why, used
	return true
}

// reason returns why the group is being ended, or "".
func (g *group) reason() Limit {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

// kill sends SIGKILL to the group, once.
func (g *group) kill() {
	g.killed.Do(func() {
		g.p.Signal(syscall.SIGKILL)
		close(g.dead)
	})
}

// sweepFor is how long sweep waits for processes that have been killed: a process that is
// blocked in a driver ends only when the driver returns.
const sweepFor = 5 * time.Second

// sweep waits until no process of the group but the first is left, or sweepFor is over.
// It is called when the first process has ended but has not been reaped, so that its
// number is still its own. If the group was ordered to end, the rest has the remaining
// grace period; otherwise sweep kills it.
func (g *group) sweep() {
	if g.reason() == "" {
		g.kill()
	}
	var bound <-chan time.Time
	for pause := time.Millisecond; g.p.Survived(); pause = min(2*pause, 100*time.Millisecond) {
		if bound == nil && g.isDead() {
			bound = time.After(sweepFor)
		}
		select {
		case <-bound:
			return
		case <-time.After(pause):
		}
	}
}

// isDead reports whether the group has been killed.
func (g *group) isDead() bool {
	select {
	case <-g.dead:
		return true
	default:
		return false
	}
}

// attemptError returns the error of the attempt, or nil if it succeeded.
func (g *group) attemptError(ctx context.Context, e Exit, tail string) error {
	failed := &ExitError{Exit: e, Tail: tail}
	switch e.Limit {
	case LimitMemory:
		failed.why = fmt.Sprintf("memory limit: its processes had %s of at most %s; they were killed",
			mebibytes(g.used), mebibytes(g.cfg.Memory))
	case LimitTime:
		failed.why = fmt.Sprintf("time limit: it was not done after %s", g.after)
	case LimitTask:
		failed.why = "it was ordered to end"
		if cause := context.Cause(ctx); cause != nil {
			failed.why += ": " + cause.Error()
		}
	default:
		if e.Status == 0 && e.Signal == 0 {
			return nil
		}
		if g.cfg.Memory > 0 {
			failed.why = fmt.Sprintf("%s (its memory was limited to %s)", failed.how(), mebibytes(g.cfg.Memory))
		}
	}
	return failed
}

// mebibytes formats n bytes as MiB.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
