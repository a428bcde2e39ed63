package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stintgo/stint/queue"
)

// check reports whether what the clients were answered can have happened one call
// after the other (linearizability: Herlihy, Wing, "Linearizability: a
// correctness condition for concurrent objects", 1990). In general that takes a
// search through all orders. Here the order is known: of the calls that concern
// one task, tokens and its steps say which came first. So it is enough that each
// answer agrees with the steps, and that no call comes before one in that order
// which was over before it began.
func (h *history) check(tasks []queue.Task) error {
	found := make(map[queue.ID]*queue.Task)
	for i := range tasks {
		found[tasks[i].ID] = &tasks[i]
	}
	var errs []error
	for _, id := range h.accepted {
		if found[id] == nil {
			errs = append(errs, fmt.Errorf("task %s was accepted and is not there", id))
		}
	}
	if len(h.accepted) != len(tasks) {
		errs = append(errs, fmt.Errorf("%d tasks were accepted, there are %d", len(h.accepted), len(tasks)))
	}
	for key, submits := range h.unique {
		if err := checkUnique(submits); err != nil {
			errs = append(errs, fmt.Errorf("the key %s: %w", key, err))
		}
	}
	return errors.Join(append(errs, h.checkClaims(), h.checkSettles(found), h.checkLimits())...)
}

// checkUnique checks that one call was the first, and all others came after it.
func checkUnique(submits []answered) error {
	var errs []error
	i := slices.IndexFunc(submits, func(a answered) bool { return !a.Existing })
	if i < 0 {
		return errors.New("no task was accepted")
	}
	first := submits[i]
	for j, a := range submits {
		if a.ID != first.ID || a.Existing != (j != i) {
			errs = append(errs, fmt.Errorf("one call is answered %+v, and another %+v", first.Receipt, a.Receipt))
		}
		if a.returned < first.called {
			errs = append(errs, errors.New("a call was told of the first one before that began"))
		}
	}
	return errors.Join(errs...)
}

// checkClaims checks that the tokens of a task grow with time.
func (h *history) checkClaims() error {
	var errs []error
	byTask := make(map[queue.ID][]claimed)
	for _, cl := range h.claims {
		byTask[cl.ID] = append(byTask[cl.ID], cl)
	}
	for id, claims := range byTask {
		slices.SortFunc(claims, func(a, b claimed) int { return cmp.Compare(a.Lease.Token, b.Lease.Token) })
		latest := int64(0) // call of those with smaller tokens
		for i, cl := range claims {
			if i > 0 && cl.Lease.Token == claims[i-1].Lease.Token {
				errs = append(errs, fmt.Errorf("task %s was claimed twice with token %d", id, cl.Lease.Token))
			}
			if cl.returned < latest {
				errs = append(errs, fmt.Errorf("task %s: a claim with token %d began after that with token %d was answered",
					id, claims[i-1].Lease.Token, cl.Lease.Token))
			}
			latest = max(latest, cl.called)
		}
	}
	return errors.Join(errs...)
}

// checkSettles checks that an outcome was accepted if and only if that is how its
// lease ended, and never after somebody else had the task.
func (h *history) checkSettles(found map[queue.ID]*queue.Task) error {
	var errs []error
	claims := make(map[queue.ID][]claimed)
	for _, cl := range h.claims {
		claims[cl.ID] = append(claims[cl.ID], cl)
	}
	ends := h.ends()
	for _, s := range h.settles {
		t := found[s.ID]
		if t == nil || cut(t) {
			continue
		}
		made := func(step queue.Step) bool { return step.Token == s.Token && step.On == s.Kind.Trigger() }
		if slices.ContainsFunc(t.Steps, made) == s.stale {
			errs = append(errs, fmt.Errorf("task %s: %s with token %d was answered stale: %t\n%s",
				s.ID, s.Kind, s.Token, s.stale, life(*t)))
		}
		// Its repetitions may come when others have the task.
		first := ends[leased{s.ID, s.Token}] == s.called
		for _, cl := range claims[s.ID] {
			if first && cl.Lease.Token > s.Token && cl.returned < s.called {
				errs = append(errs, fmt.Errorf("task %s: token %d was good when %d was out already",
					s.ID, s.Token, cl.Lease.Token))
			}
		}
	}
	return errors.Join(errs...)
}

// leased names a lease.
type leased struct {
	id    queue.ID
	token queue.Token
}

// ends are the calls by which leases ended: the first of each that was not
// refused.
func (h *history) ends() map[leased]int64 {
	ends := make(map[leased]int64)
	for _, s := range h.settles {
		l := leased{s.ID, s.Token}
		if at, ok := ends[l]; !s.stale && (!ok || s.called < at) {
			ends[l] = s.called
		}
	}
	return ends
}

// held is the beginning or the end of a time in which a task was certainly
// running.
type held struct {
	at    int64
	start bool
	key   string
}

// checkLimits counts the tasks that were certainly running at the same time: from
// the answer of a claim to the call by which it ended.
func (h *history) checkLimits() error {
	ends := h.ends()
	var holds []held
	for _, cl := range h.claims {
		if end, ok := ends[leased{cl.ID, cl.Lease.Token}]; ok { // else it was lost, nobody knows when
			holds = append(holds, held{cl.returned, true, cl.Key}, held{end, false, cl.Key})
		}
	}
	slices.SortFunc(holds, func(a, b held) int { return cmp.Compare(a.at, b.at) })
	running, keys := 0, make(map[string]int)
	for _, e := range holds {
		if !e.start {
			running--
			keys[e.key]--
			continue
		}
		running++
		keys[e.key]++
		if running > clientsMax || keys[e.key] > clientsOfKey {
			return fmt.Errorf("%d tasks ran at once, and %d of key %s; the limits are %d and %d",
				running, keys[e.key], e.key, clientsMax, clientsOfKey)
		}
	}
	return nil
}
