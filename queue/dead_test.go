package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// dead are the IDs of the dead letters that a filter finds.
func (r *rig) dead(f queue.Filter) (ids []queue.ID) {
	r.Helper()
	synctest.Wait()
	for task, err := range r.Dead(r.Context(), f) {
		if err != nil {
			r.Fatal(err)
		}
		ids = append(ids, task.ID)
	}
	return ids
}

// A dead letter has every error and its time.
func TestC3_DeadLettersHaveTheirErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Retry: retry.Policy{Base: 10 * time.Second, Factor: 2}})
		calls := 0
		r.Handle("k", func(context.Context, *queue.Attempt) error { calls++; return fmt.Errorf("error %d", calls) })
		r.start()
		begun := time.Now()
		id := r.submit("k", queue.Options{MaxAttempts: 3})
		late := r.submit("nobody's", queue.Options{Deadline: begun.Add(time.Second)})
		time.Sleep(time.Hour)
		r.is(late, queue.Dead)
		task := r.is(id, queue.Dead)
		errs := task.Errors()
		if len(errs) != 3 || task.Failures != 3 {
			t.Fatalf("%d failures with the errors %+v", task.Failures, errs)
		}
		for i, at := range []time.Duration{0, 10 * time.Second, 30 * time.Second} {
			if e := errs[i]; e.Detail != fmt.Sprint("error ", i+1) || !e.At.Equal(begun.Add(at)) || e.By == "" {
				t.Errorf("error %d is %+v, want it after %s with its text and worker", i+1, e, at)
			}
		}
		expired := r.is(late, queue.Dead)
		if errs := expired.Errors(); len(errs) != 1 || !strings.Contains(errs[0].Detail, "deadline") {
			t.Errorf("the errors of a task that came too late are %+v", errs)
		}
		if got := r.dead(queue.Filter{}); !slices.Equal(got, []queue.ID{id, late}) {
			t.Errorf("the dead letters are %v, want the oldest first: %v", got, []queue.ID{id, late})
		}
		r.end()
	})
}

// Dead letters are retried and purged by one, or as many as a filter finds, and
// nothing else is.
func TestC3_RetryAndPurgeByFilter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, queue.Config{})
		broken := true
		handle := func(_ context.Context, a *queue.Attempt) error {
			if broken {
				return retry.Permanent(fmt.Errorf("%s cannot be reached", a.Key))
			}
			return nil
		}
		r.Handle("mail", handle)
		r.Handle("push", handle)
		r.start()
		var mails []queue.ID
		for i := range 4 {
			mails = append(mails, r.submit("mail", queue.Options{Key: fmt.Sprint("host ", i%2)}))
			r.submit("push", queue.Options{})
		}
		later := r.submit("mail", queue.Options{RunAt: time.Now().Add(time.Hour)})
		synctest.Wait()
		broken = false
		done := r.submit("mail", queue.Options{})
		r.is(done, queue.Succeeded)

		if n, err := r.RetryDead(t.Context(), "ann", queue.Filter{IDs: mails[:1]}); n != 1 || err != nil {
			t.Errorf("retried %d, error %v; want the one", n, err)
		}
		task := r.is(mails[0], queue.Succeeded)
		i := slices.IndexFunc(task.Steps, func(s queue.Step) bool { return s.On == queue.OnRetry })
		if i < 0 || task.Steps[i].By != "ann" {
			t.Errorf("the steps are %+v, want a retry by ann", task.Steps)
		}
		if n, err := r.RetryDead(t.Context(), "ann", queue.Filter{Error: "host 1"}); n != 2 || err != nil {
			t.Errorf("retried %d, error %v; want those of host 1", n, err)
		}
		r.is(mails[3], queue.Succeeded)
		if n, err := r.PurgeDead(t.Context(), "ann", queue.Filter{Kind: "push"}); n != 4 || err != nil {
			t.Errorf("purged %d, error %v; want 4", n, err)
		}
		if got := r.dead(queue.Filter{}); !slices.Equal(got, mails[2:3]) {
			t.Errorf("%v are left, want %v", got, mails[2:3])
		}
		if n, err := r.PurgeDead(t.Context(), "ann", queue.Filter{}); n != 1 || err != nil {
			t.Errorf("purged %d, error %v; want the last", n, err)
		}
		r.is(later, queue.Scheduled) // which a retry would have begun, and a purge of all would leave
		r.is(done, queue.Succeeded)
		r.end()
	})
}

// The dead letters are capped by count and by age.
func TestC3_CapsByCountAndAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		keep := queue.Settings{KeepDead: queue.Retention{Count: 3, Age: time.Hour}}
		if err := r.Configure(t.Context(), "default", keep); err != nil {
			t.Fatal(err)
		}
		r.Handle("k", func(context.Context, *queue.Attempt) error { return retry.Permanent(errFault) })
		r.start()
		var ids []queue.ID
		for range 5 {
			ids = append(ids, r.submit("k", queue.Options{}))
			time.Sleep(10 * time.Minute)
		}
		if got := r.dead(queue.Filter{}); !slices.Equal(got, ids[2:]) {
			t.Errorf("%v are kept, want the last three of %v", got, ids)
		}
		time.Sleep(31 * time.Minute) // the third is over an hour old
		if got := r.dead(queue.Filter{}); !slices.Equal(got, ids[3:]) {
			t.Errorf("%v are kept, want the last two of %v", got, ids)
		}
		r.end()
	})
}

// A filter with other states than Dead is refused: it does not find dead letters instead.
func TestC3_DeadLettersOfOtherStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		r.start()
		id := r.submit("nobody's", queue.Options{Deadline: time.Now().Add(time.Second)})
		time.Sleep(time.Minute)
		if got := r.dead(queue.Filter{States: []queue.State{queue.Dead}}); !slices.Equal(got, []queue.ID{id}) {
			t.Errorf("the dead letters are %v, want %s", got, id)
		}
		for _, states := range [][]queue.State{{queue.Cancelled}, {queue.Dead, queue.Succeeded}} {
			f := queue.Filter{States: states}
			var errs []error
			for task, err := range r.Dead(t.Context(), f) {
				if errs = append(errs, err); err == nil {
					t.Errorf("of the states %v there is the dead letter %s", states, task.ID)
				}
			}
			_, err := r.RetryDead(t.Context(), "ann", f)
			errs = append(errs, err)
			_, err = r.PurgeDead(t.Context(), "ann", f)
			for _, err := range append(errs, err) {
				if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "leave States empty") {
					t.Errorf("of the states %v: error %v", states, err)
				}
			}
		}
		r.is(id, queue.Dead)
		r.end()
	})
}
