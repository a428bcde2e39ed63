package storetest

import (
	"context"
	"slices"

	"github.com/stintgo/stint/queue"
)

func closeCases() []testCase {
	return []testCase{
		{"C5_Close", Config{}, closeEndsCalls},
		{"C5_CancelledContext", Config{}, cancelledContext},
	}
}

func closeEndsCalls(c *trial) {
	c.add(queue.Options{})
	c.claimOne()
	l := c.listen(queue.DefaultQueue)
	c.ok("Close", c.Store.Close())
	l.drain()
	c.ok("Close again", c.Store.Close())
	for what, call := range c.everyCall() {
		c.refused(what, call(), queue.ErrClosed)
	}
	late := c.listen(queue.DefaultQueue) // does not hang or panic
	l.quiet("a listener of a closed store")
	late.quiet("a new listener of a closed store")
	late.stop()
	l.stop()
	l.stop()
	c.closed = true
}

// everyCall returns a call of each method of a store that returns an error.
func (c *trial) everyCall() map[string]func() error {
	ctx := c.Context()
	return map[string]func() error{
		"Submit": func() error {
			_, err := c.Store.Submit(ctx, c.now, []queue.NewTask{c.fresh(queue.Options{})})
			return err
		},
		"Claim": func() error {
			_, err := c.Store.Claim(ctx, c.now, queue.Claim{Worker: worker, Max: 1, Lease: lease})
			return err
		},
		"Settle":    func() error { _, err := c.Store.Settle(ctx, c.now, nil); return err },
		"Heartbeat": func() error { _, err := c.Store.Heartbeat(ctx, c.now, queue.Worker{Name: worker}, nil); return err },
		"Command": func() error {
			_, err := c.Store.Command(ctx, c.now, queue.Command{Do: queue.OrderCancel, All: true})
			return err
		},
		"Find":       func() error { _, err := c.Store.Find(ctx, queue.Filter{}, queue.Page{}); return err },
		"Explain":    func() error { _, err := c.Store.Explain(ctx, c.now, c.ids.New(c.now)); return err },
		"Stats":      func() error { _, err := c.Store.Stats(ctx, c.now); return err },
		"Configure":  func() error { return c.Store.Configure(ctx, c.now, "", queue.Change{}) },
		"PauseQueue": func() error { return c.Store.PauseQueue(ctx, c.now, "", nil) },
		"Settings":   func() error { _, err := c.Store.Settings(ctx); return err },
		"Schedules":  func() error { _, err := c.Store.Schedules(ctx); return err },
		"Reschedule": func() error {
			s := c.hourly("s")
			return c.Store.Reschedule(ctx, c.now, queue.Reschedule{Name: "s", To: &s})
		},
		"Maintain": func() error { _, err := c.Store.Maintain(ctx, c.now, 1); return err },
		"Watch":    func() error { return c.Store.Watch(ctx, func() {}, func(queue.Event) {}) },
	}
}

// cancelledContext shows that a call with a cancelled context takes effect completely or
// not at all, and can be repeated.
func cancelledContext(c *trial) {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	t := c.fresh(queue.Options{})
	receipts, err := c.Store.Submit(ctx, c.now, []queue.NewTask{t})
	if err != nil {
		c.refused("Submit", err, context.Canceled)
	}
	if again := c.submitTasks(t); err == nil && !slices.Equal(receipts, again) {
		c.Errorf("the receipts of a repeated call are %+v, want those of the first, %+v", again, receipts)
	}
	c.is(queue.Waiting, t.ID)
}
