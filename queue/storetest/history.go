package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stintgo/stint/queue"
)

// check reports whether the answers to the clients are linearizable, that is, possible if
// the calls had been made one after the other (Herlihy, Wing, "Linearizability: a
// correctness condition for concurrent objects", 1990). In general this takes a search
// through all orders of the calls. Here tokens and steps give the order of the calls for
// each task. It is enough that each answer agrees with the steps, and that no call
// precedes, in that order, a call that returned before it began.
func (h *history) check(tasks []queue.Task) error {
	found := make(map[queue.ID]*queue.Task)
	for i := range tasks {
		found[tasks[i].ID] = &tasks[i]
	}
	var errs []error
	for _, id := range h.accepted {
		if found[id] == nil {
			errs = append(errs, fmt.Errorf("task %s was accepted but is missing", id))
		}
	}
	if len(h.accepted) != len(tasks) {
		errs = append(errs, fmt.Errorf("%d tasks were accepted, but there are %d", len(h.accepted), len(tasks)))
	}
	for key, submits := range h.unique {
		if err := checkUnique(submits); err != nil {
			errs = append(errs, fmt.Errorf("the key %s: %w", key, err))
		}
	}
	return errors.Join(append(errs, h.checkClaims(), h.checkSettles(found), h.checkLimits())...)
}

// checkUnique checks that exactly one call was answered as new, and that no other call
// with the key returned before it began.
func checkUnique(submits []answered) error {
	var errs []error
	i := slices.IndexFunc(submits, func(a answered) bool { return !a.Existing })
	if i < 0 {
		return errors.New("no task was accepted")
	}
	first := submits[i]
	for j, a := range submits {
		if a.ID != first.ID || a.Existing != (j != i) {
			errs = append(errs, fmt.Errorf("one call returns %+v, and another %+v", first.Receipt, a.Receipt))
		}
		if a.returned < first.called {
			errs = append(errs, errors.New("a call returned the receipt of the first call before that began"))
		}
	}
	return errors.Join(errs...)
}

// checkClaims checks that the tokens of a task are unique and grow with time.
func (h *history) checkClaims() error {
	var errs []error
	byTask := make(map[queue.ID][]claimed)
	for _, cl := range h.claims {
		byTask[cl.ID] = append(byTask[cl.ID], cl)
	}
	for id, claims := range byTask {
		slices.SortFunc(claims, func(a, b claimed) int { return cmp.Compare(a.Lease.Token, b.Lease.Token) })
		latest := int64(0) // the latest call of claims with smaller tokens
		for i, cl := range claims {
			if i > 0 && cl.Lease.Token == claims[i-1].Lease.Token {
				errs = append(errs, fmt.Errorf("task %s was claimed twice with token %d", id, cl.Lease.Token))
			}
			if cl.returned < latest {
				errs = append(errs, fmt.Errorf("task %s: the claim with token %d began after the one with token %d had returned",
					id, claims[i-1].Lease.Token, cl.Lease.Token))
			}
			latest = max(latest, cl.called)
		}
	}
	return errors.Join(errs...)
}

// checkSettles checks that an outcome was accepted if and only if it ended its lease, and
// never after a later claim of the task.
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
		// Repetitions of the call may come after the next claim.
		first := ends[leased{s.ID, s.Token}] == s.called
		for _, cl := range claims[s.ID] {
			if first && cl.Lease.Token > s.Token && cl.returned < s.called {
				errs = append(errs, fmt.Errorf("task %s: token %d was accepted after a claim had returned token %d",
					s.ID, s.Token, cl.Lease.Token))
			}
		}
	}
	return errors.Join(errs...)
}

// leased identifies a lease.
type leased struct {
	id    queue.ID
	token queue.Token
}

// ends returns, by lease, the call that ended it: the first that was not refused.
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

// held is the start or the end of a period in which a task was certainly running.
type held struct {
	at    int64
	start bool
	key   string
}

// checkLimits counts the tasks that were certainly running at the same time: from the
// return of the claim to the call that settled it.
func (h *history) checkLimits() error {
	ends := h.ends()
	var holds []held
	for _, cl := range h.claims {
		if end, ok := ends[leased{cl.ID, cl.Lease.Token}]; ok { // otherwise the lease expired at an unknown time
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
