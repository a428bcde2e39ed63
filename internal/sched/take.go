package sched

import "context"

// Permit is the right to slots that a goroutine has taken, until it releases them.
type Permit struct {
	e *Engine // nil for none
	x *entry  // the entry with the slots; nil for one slot without a key
	n uint64  // how many permits for x were released before this one
}

// Take waits for the slots that a asks for. It does not use sharing.take with [Config.Holders],
// which would report the spare entry as a holder.
func (e *Engine) Take(ctx context.Context, a Ask) (Permit, error) {
	if e.cfg.Slots != nil && !e.cfg.Holders && a.plain() {
		if x := e.shared.take(a); x != nil {
			return x.permit(), nil
		}
	}
	x := e.entries.waiter(a)
	if err := x.take(ctx); err != nil {
		return Permit{}, err
	}
	return x.permit(), nil
}

// TryTake takes slots if they are free and nothing that waits goes first.
func (e *Engine) TryTake(a Ask) (p Permit, ok bool) {
	e.lock()
	defer e.unlock()
	e.startWaiting()
	if e.refuses(int(a.Weight), false) != nil {
		return p, false
	}
	x := e.entries.get(a)
	if !e.admit(a, x) {
		x.recycle()
		return p, false
	}
	e.admitted(a.Key)
	return x.permit(), true
}

// permit returns the permit for the slots of x. It keeps x only if that is needed.
func (x *entry) permit() Permit {
	e := x.e
	if e.needsEntry(x.Ask) {
		return Permit{e, x, x.permits}
	}
	x.recycle()
	return Permit{e: e}
}

// Release releases the slots to the next work that waits. It panics if it finds that they
// were released before: permits for one slot without a key are only counted.
func (p *Permit) Release() {
	e, x := p.e, p.x
	p.e = nil
	switch {
	case e == nil:
		panic(notHeld)
	case x != nil:
		x.release(p.n)
	case !e.gate.release() && !e.deferRelease():
		if e.gate.running() == 0 {
			e.unlock()
			panic(notHeld)
		}
		e.release(1)
		e.unlock()
	}
}

const notHeld = "stint: Release of a Permit that is not held: it was released before, or never acquired"

// release releases the slots of x with its permit number n. It panics if that was
// released.
func (x *entry) release(n uint64) {
	e := x.e
	e.lock()
	if x.permits != n {
		e.unlock()
		panic(notHeld)
	}
	x.permits++
	weight := int(x.Weight)
	if !e.shared.keep(x) {
		e.yield(x)
		x.recycle()
	}
	e.release(weight)
	e.unlock()
}

// take gets slots for a waiter, waiting if it must. Afterwards the entry stands for the
// slots; after an error it is recycled.
func (x *entry) take(ctx context.Context) error {
	e := x.e
	x.done = ctx.Done() // before the lock: the method of a task's context takes it
	w := e.cancellations.latestOf(x.done)
	x.arrives = w
	settled := false
	if !x.lockOrDefer() {
		settled = x.arrive()
		e.unlock()
	}
	if !settled && x.sleeps {
		var canceled bool
		if settled, canceled = e.shared.sleep(ctx, x, w != nil); canceled {
			return context.Cause(ctx)
		}
	}
	switch {
	case settled:
	case w != nil || x.done == nil:
		<-x.ready
	case !x.await(ctx):
		return context.Cause(ctx)
	}
	err := x.err
	if err == nil {
		if x.again {
			_, _ = e.cancellations.of(ctx) // for the next waiter of this context, which also sees an error
		}
		return nil
	}
	x.recycle()
	if err == errLeft { //nolint:errorlint // it is not wrapped
		return context.Cause(ctx)
	}
	return err
}

// arrive grants the slots, refuses them or queues x. settled says that x is not queued.
// The lock is held.
func (x *entry) arrive() (settled bool) {
	e, w := x.e, x.arrives
	if x.err = e.refuses(int(x.Weight), x.nested); x.err != nil {
		return true
	}
	behind := e.queue.behind(x.Ask)
	if !behind && e.admit(x.Ask, x) {
		e.admitted(x.Key)
		return true
	}
	if e.cfg.Refuse && e.full() {
		x.err = ErrQueueFull
		return true
	}
	e.shared.expect(x)
	x.push(w)
	x.again = e.cancellations.noteWait(x.done) && w == nil
	switch {
	case !behind || e.full():
		e.dispatch(0, false)
	case e.cfg.Slots != nil: // nothing may start because of it, but one more entry waits
		e.shared.want(e.gate.running())
	}
	return false
}

// push queues x, which w removes when its context ends. Unless x is behind others, the caller
// must dispatch afterwards: a slot may have come free since its check, and the gate is not
// marked for the tier yet.
func (x *entry) push(w *cancellation) {
	q := &x.e.queue
	x.since = q.arrives(int(x.Tier))
	w.rearm(x.e)
	q.push(x, w)
}

// await waits until x is granted or refused and returns true, or removes x when ctx ends
// and returns false.
func (x *entry) await(ctx context.Context) bool {
	select {
	case <-x.ready:
	case <-ctx.Done():
		if x.withdraw() {
			return false
		}
		<-x.ready // granted at the same moment: the caller has the slot and has to release it
	}
	return true
}

// withdraw removes a waiter from the queue and reports whether it was still queued. It
// starts entries that x held back.
func (x *entry) withdraw() bool {
	e := x.e
	e.lock()
	if !x.waits {
		e.unlock()
		return false
	}
	e.queue.remove(e.queue.entered(x))
	x.recycle()
	e.dispatchAndUnlock(0, false)
	return true
}

// admit starts an arrival at once if nothing that waits goes first. x stands for its
// slots.
func (c *core) admit(a Ask, x *entry) bool {
	for {
		old := c.gate.word.Load()
		if !c.admits(a, int(uint32(old))) || c.cfg.Slots != nil && c.shared.obtain(x) != nil {
			return false
		}
		if c.gate.word.CompareAndSwap(old, old+uint64(a.Weight)) {
			if a.Key != "" {
				c.queue.log().Keys().Admit(a.Key)
			}
			c.holders.begin(x)
			return true
		}
	}
}

// admits reports whether an arrival may start at once, provided that a shared slot is
// free.
func (c *core) admits(a Ask, running int) bool {
	return c.limits.paused == nil && !c.suspended.holds() &&
		c.queue.log().Admits(int(a.Tier), a.Key, int(a.Weight), running)
}

// admitted follows an admission. If its key is at the limit now, the key's entries no
// longer hold back what waits behind them; and a waiting tier may have reached its cap.
func (c *core) admitted(key string) {
	switch {
	case c.queue.empty():
	case key != "":
		c.dispatch(0, false)
	case c.cfg.Slots != nil:
		c.shared.want(c.gate.running())
	}
}
