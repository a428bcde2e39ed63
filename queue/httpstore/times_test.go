package httpstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// apart is a client whose clock is ahead of the server's.
type apart struct {
	*testing.T
	*httpstore.Store
	by time.Duration
}

func (c *apart) now() time.Time { return time.Now().Add(c.by) }

func (c *apart) submit(runAt time.Time) queue.ID {
	c.Helper()
	var ids queue.IDs
	task := queue.NewTask{ID: ids.New(c.now()), Spec: queue.Spec{Kind: "work", Options: queue.Options{RunAt: runAt}}}
	if _, err := c.Submit(c.Context(), c.now(), []queue.NewTask{task}); err != nil {
		c.Fatal(err)
	}
	return task.ID
}

// claim claims what can be, after what is due was done.
func (c *apart) claim() []queue.Task {
	c.Helper()
	if _, err := c.Maintain(c.Context(), c.now(), 0); err != nil {
		c.Fatal(err)
	}
	claim := queue.Claim{Worker: "w", Kinds: []string{"work"}, Max: 10, Lease: time.Hour}
	got, err := c.Claim(c.Context(), c.now(), claim)
	if err != nil {
		c.Fatal(err)
	}
	return got.Tasks
}

// after checks that a task can be claimed after a time and not before.
func (c *apart) after(d time.Duration, id queue.ID) (t queue.Task) {
	c.Helper()
	time.Sleep(d - time.Nanosecond)
	if n := len(c.claim()); n != 0 {
		c.Fatalf("%d tasks start before %s have passed", n, d)
	}
	time.Sleep(time.Nanosecond)
	got := c.claim()
	if len(got) != 1 || got[0].ID != id {
		c.Fatalf("after %s, %d tasks start", d, len(got))
	}
	return got[0]
}

// Delays and backoff of a client are as long as it asks for, whatever its clock shows, and
// the times of answers are by that clock.
func TestC8_TimesOfClientsWithOtherClocks(t *testing.T) {
	for _, by := range []time.Duration{0, time.Second, -time.Second, time.Hour, -time.Hour, 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{t: t}
			n.start(memstore.New(memstore.Config{}), server.Config{})
			c := &apart{t, n.open(httpstore.Config{}), by}
			runAt := c.now().Add(10 * time.Minute)
			id := c.submit(runAt)
			why, err := c.Explain(c.Context(), c.now(), id)
			if err != nil || len(why) != 1 || !why[0].Until.Equal(runAt) {
				t.Errorf("it waits until %v because of %+v, %v", runAt, why, err)
			}
			task := c.after(10*time.Minute, id)
			if now := c.now(); !task.RunAt.Equal(runAt) || !task.Changed.Equal(now) || !task.Steps[2].At.Equal(now) ||
				!task.Lease.Until.Equal(now.Add(time.Hour)) {
				t.Errorf("at %v, a client with a clock %s ahead claims %+v", now, by, task)
			}
			failed := []queue.Outcome{
				{ID: id, Token: task.Lease.Token, Kind: queue.OutcomeFailure, RunAt: c.now().Add(30 * time.Second)},
			}
			if answers, err := c.Settle(c.Context(), c.now(), failed); err != nil || answers[0] != nil {
				t.Fatal(answers, err)
			}
			c.after(30*time.Second, id)
		})
	}
}

// Clocks that differ by less than a second count as one: a time of day is found again
// as it was given.
func TestC8_TimesOfClientsWithTheSameClock(t *testing.T) {
	for _, by := range []time.Duration{time.Second - 1, 1 - time.Second} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{t: t}
			n.start(memstore.New(memstore.Config{}), server.Config{})
			c := &apart{t, n.open(httpstore.Config{}), by}
			runAt := c.now().Add(time.Hour)
			found, err := c.Find(c.Context(), queue.Filter{IDs: []queue.ID{c.submit(runAt)}}, queue.Page{})
			if err != nil || len(found) != 1 || !found[0].RunAt.Equal(runAt) {
				t.Errorf("a task is to run at %v: %+v, %v", runAt, found, err)
			}
		})
	}
}

// That a call waits for its server does not count for a difference of the clocks.
func TestC8_TimesOfCallsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		c := &apart{t, n.open(httpstore.Config{Patience: time.Minute}), 0}
		runAt := c.now().Add(time.Hour)
		submitted := make(chan queue.ID)
		go func() { submitted <- c.submit(runAt) }()
		time.Sleep(30 * time.Second)
		n.start(memstore.New(memstore.Config{}), server.Config{})
		found, err := c.Find(c.Context(), queue.Filter{IDs: []queue.ID{<-submitted}}, queue.Page{})
		if err != nil || len(found) != 1 || !found[0].RunAt.Equal(runAt) {
			t.Errorf("a task is to run at %v: %+v, %v", runAt, found, err)
		}
	})
}

// A client edits times by its own clock; the zero time stays zero.
func TestC8_EditsOfClientsWithOtherClocks(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{t: t}
			n.start(memstore.New(memstore.Config{}), server.Config{})
			c := &apart{t, n.open(httpstore.Config{}), by}
			edit := func(e queue.Edit, id queue.ID) {
				t.Helper()
				command := queue.Command{Do: queue.OrderEdit, Edit: &e, Filter: queue.Filter{IDs: []queue.ID{id}}}
				if changed, err := c.Command(c.Context(), c.now(), command); err != nil || changed != 1 {
					t.Fatal(changed, err)
				}
			}
			runAt, deadline := c.now().Add(10*time.Minute), c.now().Add(20*time.Minute)
			id := c.submit(time.Time{})
			edit(queue.Edit{RunAt: &runAt, Deadline: &deadline}, id)
			if got := c.after(10*time.Minute, id); !got.RunAt.Equal(runAt) || !got.Deadline.Equal(deadline) {
				t.Errorf("edited to %v and %v, the task has %v and %v", runAt, deadline, got.RunAt, got.Deadline)
			}
			id = c.submit(c.now().Add(time.Hour))
			edit(queue.Edit{RunAt: new(time.Time{}), Deadline: &deadline}, id)
			edit(queue.Edit{Deadline: new(time.Time{})}, id)
			got := c.claim()
			if len(got) != 1 || got[0].ID != id || !got[0].RunAt.IsZero() || !got[0].Deadline.IsZero() {
				t.Errorf("edited to start at once, without a deadline, the claim gives %+v", got)
			}
		})
	}
}
