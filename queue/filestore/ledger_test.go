package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// What clients write down: what they are about to ask for, and what they were
// promised.
const (
	asksToSubmit  = "submit"
	wasAccepted   = "accepted"
	asksToSucceed = "succeed"
	hasSucceeded  = "succeeded"
	asksToBury    = "bury"
	wasBuried     = "buried"
	wasClaimed    = "claimed" // by a worker of the process
	wasLeased     = "leased"  // to a worker of another one
	asksToGive    = "give"    // it back
	asksToClose   = "close"   // the store
)

// entry is one line of what clients write down. The tasks of a submit are those of
// one call.
type entry struct {
	what string
	ids  []queue.ID
}

func (e entry) String() string {
	words := []string{e.what}
	for _, id := range e.ids {
		words = append(words, id.String())
	}
	return strings.Join(words, " ")
}

func parseEntry(line string) (e entry, err error) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return e, errors.New("an empty line")
	}
	e.what = words[0]
	for _, word := range words[1:] {
		id, err := queue.ParseID(word)
		if err != nil {
			return e, err
		}
		e.ids = append(e.ids, id)
	}
	return e, nil
}

// client submits tasks, claims them, and settles what it has claimed, until it has
// made a number of calls or one fails.
type client struct {
	store queue.Store
	name  string
	rng   *rand.Rand
	ids   queue.IDs
	clock func() time.Time
	note  func(entry)
}

func (c *client) run(ctx context.Context, calls int) error {
	for range calls {
		do := c.work
		if c.rng.IntN(3) == 0 {
			do = c.submit
		}
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) submit(ctx context.Context) error {
	tasks := make([]queue.NewTask, 1+c.rng.IntN(4))
	ids := make([]queue.ID, len(tasks))
	for i := range tasks {
		ids[i] = c.ids.New(c.clock())
		tasks[i] = queue.NewTask{ID: ids[i], Spec: queue.Spec{
			Kind: "work", Payload: make([]byte, c.rng.IntN(300)),
			Options: queue.Options{MaxCrashes: 1000}, // they are not to blame
		}}
	}
	c.note(entry{asksToSubmit, ids})
	if _, err := c.store.Submit(ctx, c.clock(), tasks); err != nil {
		return err
	}
	c.note(entry{wasAccepted, ids})
	return nil
}

// work claims a task and settles it in one of three ways, or keeps it.
func (c *client) work(ctx context.Context) error {
	remote, by := c.rng.IntN(2) == 0, wasClaimed
	if remote {
		by = wasLeased
	}
	claimed, err := c.store.Claim(ctx, c.clock(), queue.Claim{
		Worker: c.name, Kinds: []string{"work"}, Max: 1, Lease: time.Hour, Remote: remote,
	})
	if err != nil || len(claimed.Tasks) == 0 {
		return err
	}
	t := claimed.Tasks[0]
	c.note(entry{by, []queue.ID{t.ID}})
	settle := queue.Outcome{ID: t.ID, Token: t.Lease.Token, Kind: queue.OutcomeRelease}
	asks, was := asksToGive, ""
	switch c.rng.IntN(8) {
	case 0:
		return nil
	case 1:
	case 2:
		settle.Kind, settle.Permanent, settle.Error = queue.OutcomeFailure, true, "no"
		asks, was = asksToBury, wasBuried
	default:
		settle.Kind, settle.Result = queue.OutcomeSuccess, t.ID[:]
		asks, was = asksToSucceed, hasSucceeded
	}
	return c.settle(ctx, settle, asks, was)
}

func (c *client) settle(ctx context.Context, o queue.Outcome, asks, was string) error {
	c.note(entry{asks, []queue.ID{o.ID}})
	answers, err := c.store.Settle(ctx, c.clock(), []queue.Outcome{o})
	if err = errors.Join(append(answers, err)...); err != nil {
		return err
	}
	if was != "" {
		c.note(entry{was, []queue.ID{o.ID}})
	}
	return nil
}

// verify compares a store that was opened after a crash with the ledger that its clients
// have written: each promised task is there, in one state, no other task is there,
// and a call is there as a whole or not at all. If what
// was written and not synced is there too, so are the claims.
func verify(ctx context.Context, store queue.Store, ledger []entry, claims bool) error {
	var errs []error
	tasks, err := all(ctx, store)
	if err != nil {
		return err
	}
	asked := map[queue.ID]string{} // the last that was asked for
	for _, e := range ledger {
		there := 0
		for _, id := range e.ids {
			t, ok := tasks[id]
			if ok {
				there++
			}
			if e.what == hasSucceeded && (t.State != queue.Succeeded || string(t.Result) != string(id[:])) ||
				e.what == wasBuried && t.State != queue.Dead || e.what == wasAccepted && !ok {
				errs = append(errs, fmt.Errorf("task %s %s, and is %s", id, e.what, t.State))
			}
			if e.what == asksToSubmit || e.what == asksToSucceed || e.what == asksToBury {
				asked[id] = e.what
			}
		}
		if e.what == asksToSubmit && there > 0 && there < len(e.ids) {
			errs = append(errs, fmt.Errorf("of a call of %d tasks, %d are there", len(e.ids), there))
		}
	}
	for id, t := range tasks {
		if asked[id] == "" || t.State == queue.Succeeded && asked[id] != asksToSucceed ||
			t.State == queue.Dead && asked[id] != asksToBury {
			errs = append(errs, fmt.Errorf("task %s is %s, and what was asked for is to %s it", id, t.State, asked[id]))
		}
	}
	if claims {
		errs = append(errs, verifyClaims(tasks, ledger))
	}
	return errors.Join(errs...)
}

// verifyClaims checks those tasks that were claimed and of which nothing more was
// asked: a worker in another process has its lease, and one that was killed is counted.
func verifyClaims(tasks map[queue.ID]queue.Task, ledger []entry) error {
	last := map[queue.ID]string{}
	for _, e := range ledger {
		for _, id := range e.ids {
			last[id] = e.what
		}
		if e.what == asksToClose {
			maps.DeleteFunc(last, func(_ queue.ID, what string) bool { return what == wasClaimed })
		}
	}
	var errs []error
	for id, what := range last {
		t := tasks[id]
		if what == wasLeased && t.State != queue.Running || what == wasClaimed && t.Crashes == 0 {
			errs = append(errs, fmt.Errorf("task %s was %s, and is %s with %d crashes", id, what, t.State, t.Crashes))
		}
	}
	return errors.Join(errs...)
}

// finish has all tasks end that have not, and checks that each has succeeded, or
// was buried, once.
func finish(ctx context.Context, store queue.Store, now time.Time) error {
	for _, after := range []time.Duration{0, 2 * time.Hour} { // all leases are over
		now = now.Add(after)
		if _, err := store.Maintain(ctx, now, 0); err != nil {
			return err
		}
	}
	for {
		claimed, err := store.Claim(ctx, now, queue.Claim{
			Worker: "last", Kinds: []string{"work"}, Max: 100, Lease: time.Hour,
		})
		if err != nil {
			return err
		}
		if len(claimed.Tasks) == 0 {
			break
		}
		outcomes := make([]queue.Outcome, len(claimed.Tasks))
		for i, t := range claimed.Tasks {
			outcomes[i] = queue.Outcome{ID: t.ID, Token: t.Lease.Token, Kind: queue.OutcomeSuccess}
		}
		answers, err := store.Settle(ctx, now, outcomes)
		if err = errors.Join(append(answers, err)...); err != nil {
			return err
		}
	}
	tasks, err := all(ctx, store)
	if err != nil {
		return err
	}
	for id, t := range tasks {
		ends := slices.DeleteFunc(t.Steps, func(s queue.Step) bool { return !s.To.Finished() })
		if !t.State.Finished() || len(ends) != 1 {
			return fmt.Errorf("task %s is %s, and has ended %d times", id, t.State, len(ends))
		}
	}
	return nil
}

// all returns all tasks of a store.
func all(ctx context.Context, store queue.Store) (map[queue.ID]queue.Task, error) {
	const limit = 1000
	tasks := map[queue.ID]queue.Task{}
	var after queue.ID
	for {
		page, err := store.Find(ctx, queue.Filter{}, queue.Page{After: after, Limit: limit})
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			tasks[t.ID], after = t, t.ID
		}
		if len(page) < limit {
			return tasks, nil
		}
	}
}
