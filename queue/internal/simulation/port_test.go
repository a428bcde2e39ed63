package simulation_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// port implements the store for a Queue: calls go through the gate, and times are those
// of the process's clock.
type port struct {
	queue.Store       // the methods that port does not replace
	owner       *node // the node that has made the Queue
	kinds       []string
}

// call is a call of the store, and its answer.
type call struct {
	author *node
	name   string
	now    time.Time // the time that the call names; zero if it names none
	args   any
	answer any
	err    error
	sent   time.Time // when it was sent
	back   time.Time // when the node had the answer or an error
	lost   bool      // the answer is lost
	view   *view     // of the author of the call, for changes of schedules
	events int       // the events that it caused
	flaw   flaw      // of the disk, which the call met
}

// tasks returns the tasks that the call submits.
func (c *call) tasks() []queue.NewTask {
	switch of := c.args.(type) {
	case []queue.NewTask:
		return of
	case queue.Reschedule:
		return of.Tasks
	default:
		return nil
	}
}

// make waits for its step, makes a call, and has it checked. The arguments must be
// copies: the node may change its own later.
func (p *port) make(ctx context.Context, c *call, key string, do func(queue.Store) error) error {
	n := p.by(ctx)
	w := n.w
	c.author, c.sent = n, w.now()
	defer func() { c.back = w.now() }()
	f := w.gate.pass(ctx, n, c.name+" "+key)
	switch f {
	case before:
		w.note(func() { w.checker.unreached(c) })
		return fmt.Errorf("%w: it is not reached", queue.ErrUnavailable)
	case withdrawn:
		w.note(func() { w.checker.unreached(c) })
		return context.Cause(ctx)
	case over:
		return queue.ErrClosed
	default:
	}
	c.lost = f == lost
	if w.disk.fault != sound {
		w.checker.saved = w.checker.copied()
	}
	flaw := w.disk.fault
	c.err = w.withStore(do)
	if w.disk.fault == sound {
		c.flaw = flaw
		w.ill = w.ill || flaw != sound
	}
	w.made = append(w.made, c)
	err := c.err
	if c.lost && err == nil {
		err = fmt.Errorf("%w: its answer is lost", queue.ErrUnavailable)
	}
	if w.gate.pass(ctx, n, c.name+" answer "+key) == over {
		return queue.ErrClosed
	}
	return err
}

// withStore calls fn with the store, if it is open. A panic of the store ends the
// simulation.
func (w *world) withStore(do func(queue.Store) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			w.fail(fmt.Errorf("the store panics: %v\n%s", v, debug.Stack()))
			err = queue.ErrUnavailable
		}
	}()
	if w.store == nil {
		return fmt.Errorf("%w: it is down", queue.ErrUnavailable)
	}
	return do(w.store)
}

// moved converts a time of the node's clock to the store's clock.
func (p *port) moved(t time.Time) time.Time { return moved(t, p.owner.skewed()) }

func moved(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}

func (p *port) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) (out []queue.Receipt, err error) {
	now = p.moved(now)
	tasks = slices.Clone(tasks)
	for i := range tasks {
		tasks[i].RunAt, tasks[i].Deadline = p.moved(tasks[i].RunAt), p.moved(tasks[i].Deadline)
	}
	c := &call{name: "Submit", now: now, args: tasks}
	err = p.make(ctx, c, tasks[0].ID.String(), func(s queue.Store) (err error) {
		out, err = s.Submit(ctx, now, tasks)
		c.answer = out
		return err
	})
	return answered(out, err)
}

// answered returns the answer, or an error if the answer is lost.
func answered[T any](answer T, err error) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}

func (p *port) Claim(ctx context.Context, now time.Time, q queue.Claim) (out queue.Claimed, err error) {
	now = p.moved(now)
	q.Remote = true // each node is a process of its own
	c := &call{name: "Claim", now: now, args: q}
	err = p.make(ctx, c, fmt.Sprint(q.Queue, q.Max), func(s queue.Store) (err error) {
		out, err = s.Claim(ctx, now, q)
		c.answer = out
		return err
	})
	// Goroutines that want the same slots must not return at the same time.
	apart := upTo(p.owner.w.lots(p.by(ctx).name, q.Queue, now), time.Millisecond)
	out.Next = moved(out.Next, apart-p.owner.skewed())
	return answered(out, err)
}

func (p *port) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) (out []error, err error) {
	now = p.moved(now)
	sent := slices.Clone(outcomes)
	for i := range sent {
		sent[i].RunAt = p.moved(sent[i].RunAt)
	}
	c := &call{name: "Settle", now: now, args: sent}
	err = p.make(ctx, c, sent[0].ID.String(), func(s queue.Store) (err error) {
		out, err = s.Settle(ctx, now, sent)
		c.answer = out
		return err
	})
	return answered(out, err)
}

// Heartbeat sorts the heartbeats, because a queue sends them in any order.
func (p *port) Heartbeat(
	ctx context.Context, now time.Time, worker queue.Worker, heartbeats []queue.Heartbeat,
) (out []queue.Answer, err error) {
	now = p.moved(now)
	order := make([]int, len(heartbeats))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		l, r := &heartbeats[a], &heartbeats[b]
		return cmp.Or(slices.Compare(l.ID[:], r.ID[:]), cmp.Compare(l.Token, r.Token))
	})
	sent := make([]queue.Heartbeat, len(heartbeats))
	for i, from := range order {
		sent[i] = heartbeats[from]
	}
	c := &call{name: "Heartbeat", now: now, args: sent}
	saves := slices.ContainsFunc(sent, func(b queue.Heartbeat) bool { return b.Checkpoint != nil })
	err = p.make(ctx, c, fmt.Sprint(now, saves), func(s queue.Store) error { // a worker may have several under way
		answers, err := s.Heartbeat(ctx, now, worker, sent)
		c.answer = answers
		if err != nil {
			return err
		}
		out = make([]queue.Answer, len(heartbeats))
		for i, from := range order {
			out[from] = answers[i]
		}
		return nil
	})
	return answered(out, err)
}

func (p *port) Command(ctx context.Context, now time.Time, q queue.Command) (out int, err error) {
	now = p.moved(now)
	c := &call{name: "Command", now: now, args: q}
	err = p.make(ctx, c, fmt.Sprint(q.By), func(s queue.Store) (err error) {
		out, err = s.Command(ctx, now, q)
		c.answer = out
		return err
	})
	return answered(out, err)
}

// setting is the argument of Configure.
type setting struct {
	queue  string
	change queue.Change
}

func (p *port) Configure(ctx context.Context, now time.Time, name string, change queue.Change) error {
	now = p.moved(now)
	c := &call{name: "Configure", now: now, args: setting{name, change}}
	return p.make(ctx, c, name+now.String(), func(store queue.Store) error {
		return store.Configure(ctx, now, name, change)
	})
}

// pausing is the argument of PauseQueue.
type pausing struct {
	queue string
	pause *queue.Pause
}

func (p *port) PauseQueue(ctx context.Context, now time.Time, name string, pause *queue.Pause) error {
	sent := now
	now = p.moved(now)
	c := &call{name: "PauseQueue", now: now, args: pausing{name, pause}}
	return p.make(ctx, c, name+sent.String(), func(store queue.Store) error {
		return store.PauseQueue(ctx, now, name, pause)
	})
}

func (p *port) Schedules(ctx context.Context) (out []queue.ScheduleState, err error) {
	v := p.view(ctx)
	c := &call{name: "Schedules", view: v}
	err = p.make(ctx, c, v.operator, func(s queue.Store) (err error) {
		out, err = s.Schedules(ctx)
		c.answer = out
		return err
	})
	v.at = p.owner.wall() // a ticker reads the clock when it has the schedules
	return answered(out, err)
}

// Reschedule draws the IDs of tasks again for this schedule, because a ticker draws the
// IDs of schedules that are due at the same time in any order.
func (p *port) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	now = p.moved(now)
	if r.To != nil {
		ids := queue.IDs{Random: p.owner.w.lots(p.by(ctx).name, r.Name, r.Was, now, len(r.Tasks)).Uint64}
		to, last := *r.To, r.To.Last.Task
		r.To, r.Tasks = &to, slices.Clone(r.Tasks)
		if to.Version != r.Was {
			to.Version = ids.New(now)
		}
		for i := range r.Tasks {
			was := r.Tasks[i].ID
			if r.Tasks[i].ID = ids.New(now); was == last {
				to.Last.Task = r.Tasks[i].ID
			}
		}
	}
	c := &call{name: "Reschedule", now: now, args: r, view: p.view(ctx)}
	return p.make(ctx, c, r.Name+c.view.operator, func(s queue.Store) error { return s.Reschedule(ctx, now, r) })
}

// Find looks a task up.
func (p *port) Find(ctx context.Context, f queue.Filter, page queue.Page) (out []queue.Task, err error) {
	c := &call{name: "Find", args: f.IDs, view: p.view(ctx)}
	hook := calledBy("callDead")
	if hook { // no schedule depends on the result
		c.view = &view{busy: make(map[queue.ID]bool)}
	}
	err = p.make(ctx, c, fmt.Sprint(f.IDs, hook), func(s queue.Store) (err error) {
		out, err = s.Find(ctx, f, page)
		c.answer = out
		return err
	})
	return answered(out, err)
}

// calledBy reports whether a function is on the stack. A hook and a schedule may look up
// the same task at the same time, and only the stack distinguishes them.
func calledBy(name string) bool {
	pcs := make([]uintptr, 16)
	for frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)]); ; {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, name) {
			return true
		}
		if !more {
			return false
		}
	}
}

func (p *port) Maintain(ctx context.Context, now time.Time, limit int) (out time.Time, err error) {
	now = p.moved(now)
	c := &call{name: "Maintain", now: now, args: limit}
	err = p.make(ctx, c, "", func(s queue.Store) (err error) {
		out, err = s.Maintain(ctx, now, limit)
		c.answer = out
		return err
	})
	return answered(moved(out, -p.owner.skewed()), err)
}

// Listen returns a signal that the world gives. Listeners begin in steps of their own, so
// they never look at the same time by themselves.
func (p *port) Listen(name string) (ready <-chan struct{}, stop func()) {
	w := p.owner.w
	e := w.listen(p.owner.host, name)
	w.gate.turn(w.ctx, p.owner, e.key)
	return e.ready, func() { w.unlisten(e) }
}
