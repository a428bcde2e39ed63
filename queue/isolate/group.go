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

// program is what a group begins with.
type program struct {
	path  string
	args  []string
	env   []string // besides that of this process
	dir   string
	stdin *os.File
	extra []*os.File // its descriptors from 3 on
	// stop asks the group to end. It is called at most once, and does not block.
	stop func(p *proc.Process, why error)
}

// group is the processes of an attempt: the first one, and all that it starts.
type group struct {
	cfg     *Config
	timeout time.Duration // the task's own; 0 is none
	p       *proc.Process
	cell    *cell
	after   time.Duration // that was over, if time is the reason; set before why is

	killed sync.Once
	dead   chan struct{} // SIGKILL has been sent to all

	mu   sync.Mutex
	why  Limit // it is being ended for, the first reason; guarded by mu
	used int64 // bytes of memory, when that was the reason; guarded by mu
}

// run runs a program and returns when its group has ended. The error is an
// [*ExitError] unless the program could not be run at all; then there is no exit, and
// the error is a [queue.Shortage] if it is this process's.
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
	defer g.cell.give(g)
	a.Started()
	g.timeout = a.Timeout
	out.begin()
	exit := g.wait(ctx, pr.stop)
	out.finish()
	exit.Output, exit.Lost = out.sum()
	return &exit, g.verdict(ctx, exit, string(out.shown.bytes()))
}

// start starts the program. end is its output's, and is closed here.
func (c *Config) start(ctx context.Context, pr *program, end *os.File) (*group, error) {
	defer func() { _ = end.Close() }() // nothing is written to it here
	cell, env, err := watching.take()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // opening the log may have taken long
		cell.give(nil)
		return nil, fmt.Errorf("isolate: not started: %w", context.Cause(ctx))
	}
	p, err := startProcess(&proc.Spec{
		Path: pr.path, Args: pr.args, Env: proc.Merge(os.Environ(), pr.env, env), Dir: pr.dir,
		Files: [3]*os.File{pr.stdin, end, end}, Extra: pr.extra,
		Group: cell.group, Watched: cell.group != nil, GiveUp: atOnce,
	})
	if err != nil {
		cell.give(nil)
		return nil, &startError{err}
	}
	g := &group{cfg: c, p: p, cell: cell, dead: make(chan struct{})}
	cell.hold(g)
	return g, nil
}

// startProcess is proc.Start, but for tests of its errors.
var startProcess = proc.Start //nolint:gochecknoglobals // a seam for tests

// atOnce has a start not wait for room for a process: the queue waits, which gives
// the slot to nobody else meanwhile but leaves the task to other workers.
var atOnce = func() <-chan struct{} { //nolint:gochecknoglobals // a constant
	closed := make(chan struct{})
	close(closed)
	return closed
}()

// startError is the error of a program that could not be started.
type startError struct{ err error }

func (e *startError) Error() string { return "isolate: " + e.err.Error() }

func (e *startError) Unwrap() error { return e.err }

// wait ends the group when it is time for that, and returns when nothing of it
// is left.
func (g *group) wait(ctx context.Context, stop func(*proc.Process, error)) Exit {
	forget := memories.limit(g, g.cfg.Memory)
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

// endWhen ends the group when its context ends, or its time is over.
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
	if errors.Is(reason, queue.ErrStale) { // somebody else may be at work on the task
		g.kill()
		return
	}
	grace := time.After(g.cfg.Grace)
	stop(g.p, reason)
	if why == LimitTime { // its lease may be over meanwhile
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

// claim notes why the group ends, and reports whether that is the first reason.
// One that has ended by itself has no reason, though nobody may have noticed.
func (g *group) claim(why Limit, used int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.why != "" || g.p.Ended() {
		return false
	}
	g.why, g.used = why, used
	return true
}

// reason is why the group ends, or empty.
func (g *group) reason() Limit {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}

// kill ends the group at once.
func (g *group) kill() {
	g.killed.Do(func() {
		g.p.Signal(syscall.SIGKILL)
		close(g.dead)
	})
}

// sweepFor bounds how long sweep waits for processes that have been killed: one
// that hangs in a driver ends when that lets it.
const sweepFor = 5 * time.Second

// sweep is called when the first process has ended and still has its number. It
// returns when no other is left: those that were told to end have the same time
// for it as the first one, all others are killed.
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

// verdict is the error of an attempt, or nil.
func (g *group) verdict(ctx context.Context, e Exit, tail string) error {
	failed := &ExitError{Exit: e, Tail: tail}
	switch e.Limit {
	case LimitMemory:
		failed.why = fmt.Sprintf("memory limit: its processes had %s, and may have %s; they were killed",
			mebibytes(g.used), mebibytes(g.cfg.Memory))
	case LimitTime:
		failed.why = fmt.Sprintf("time limit: it was not done after %s", g.after)
	case LimitTask:
		failed.why = "it was told to end"
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

// mebibytes is a size for people.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
