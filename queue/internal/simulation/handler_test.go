package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// args are the payload of all tasks.
type args struct{ N int }

// plan is what a handler does in one attempt.
type plan struct {
	takes    time.Duration
	deaf     time.Duration // how long it continues after its context has ended
	saves    bool
	submits  bool // submits a task of its own
	end      ending
	finishes bool // even if its context has ended
}

// ending is how a handler returns.
type ending uint8

const (
	succeeds ending = iota
	fails
	permanent
	snoozes
	after
	panics
	exits
	endings
)

var errHandler = errors.New("the handler fails")

// lots returns a source of random numbers for one purpose, so that callers may draw in
// any order.
func (w *world) lots(of ...any) *rand.Rand {
	h := fnv.New64a()
	h.Write(fmt.Append(nil, of...))
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// plan draws what an attempt does.
func (w *world) plan(t *queue.Task) plan {
	rng := w.lots(t.ID, t.Lease.Token)
	p := plan{takes: upTo(rng, w.lease/2), saves: rng.IntN(4) == 0}
	if rng.IntN(6) == 0 {
		p.takes = upTo(rng, 3*w.lease)
	}
	if w.calm {
		if t.Timeout > 0 {
			p.takes = min(p.takes, t.Timeout/2)
		}
		return p
	}
	if rng.IntN(3) == 0 {
		p.end = ending(rng.IntN(int(endings)))
	}
	if rng.IntN(10) == 0 {
		p.deaf = upTo(rng, 3*w.grace)
	}
	p.finishes = rng.IntN(4) == 0
	p.submits = rng.IntN(12) == 0
	return p
}

// upTo draws a duration. Its nanoseconds make it differ from all others.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most))) + 1
}

// handle is the handler of all kinds.
func (p *port) handle(ctx context.Context, j *queue.Job[args]) error {
	n := p.by(ctx)
	w, lease := n.w, leaseOf{j.ID, j.Lease.Token}
	if w.gate.pass(ctx, n, fmt.Sprint("begin ", lease)) == over { // several handlers may begin in one step
		return errHandler
	}
	w.note(func() { w.checker.began(ctx, n, &j.Task) })
	does := w.plan(&j.Task)
	if does.saves {
		j.Save(fmt.Appendf(nil, "%d", lease.token))
		j.Report(queue.Progress{Done: 1, Total: 2})
	}
	w.wait(ctx, does.takes)
	if does.submits && ctx.Err() == nil {
		if _, err := queue.Kind[args](kindNames[0]).Submit(ctx, n.q, args{1000}, queue.Options{Queue: j.Queue}); err != nil {
			w.note(func() { w.log("%s cannot submit: %v", n.name, err) })
		}
	}
	if ctx.Err() != nil {
		w.wait(context.WithoutCancel(ctx), does.deaf)
	}
	if w.gate.pass(ctx, n, fmt.Sprint("return ", lease)) == over {
		return errHandler
	}
	cause := context.Cause(ctx)
	if cause != nil && !does.finishes {
		does.end = fails
	}
	w.note(func() { w.checker.returned(n, lease, does.end, cause) })
	return does.end.do()
}

// wait blocks for d, or until ctx or the simulation ends.
func (w *world) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-w.over:
	}
}

// do returns, panics or exits as the ending says.
func (e ending) do() error {
	const again = 7 * time.Second
	switch e {
	case succeeds:
		return nil
	case permanent:
		return retry.Permanent(errHandler)
	case snoozes:
		return queue.Snooze(again)
	case after:
		return retry.After(again, errHandler)
	case panics:
		panic("the handler panics")
	case exits:
		runtime.Goexit()
	default:
	}
	return errHandler
}
