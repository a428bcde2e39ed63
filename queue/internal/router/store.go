package router

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/queue"
)

// Store is a [queue.Store] of several groups. It is safe for concurrent use.
//
// What concerns one queue goes to its group. What concerns tasks by their IDs goes to the
// group that is known to have the task, or to all groups. What concerns all queues goes to all
// groups, and is a step in each. A call that needs tasks of several groups in one step is
// refused with [queue.ErrInvalid].
type Store struct {
	fanOut

	tasks   groupCache
	batches groupCache
	slow    []slow // by group

	mu     sync.Mutex // guards closed, and the start of probes
	closed bool
	probes sync.WaitGroup
}

var _ queue.Store = (*Store)(nil)

// New returns the store of the groups of a table, whose stores are in the same order.
func New(t *Table, stores []queue.Store) *Store {
	if t.Len() != len(stores) {
		panic(fmt.Sprintf("router: %d stores for %d groups", len(stores), t.Len()))
	}
	return &Store{fanOut: fanOut{t, stores, make([]atomic.Bool, len(stores))}, slow: make([]slow, len(stores))}
}

// Claim is as [queue.Store] says.
func (s *Store) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	g := s.table.Of(c.Queue)
	claimed, err := s.stores[g].Claim(ctx, now, c)
	for i := range claimed.Tasks {
		s.tasks.put(claimed.Tasks[i].ID, g)
	}
	return claimed, err
}

// pick returns the items with some indexes.
func pick[T any](items []T, indexes []int) []T {
	picked := make([]T, len(indexes))
	for i, at := range indexes {
		picked[i] = items[at]
	}
	return picked
}

// Settle is as [queue.Store] says. If a group does not answer that has one of the tasks, or may have
// it, Settle returns an error, also if others have settled their outcomes, which do not wait for that
// group: the repeated call returns the same for these.
func (s *Store) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	if len(outcomes) == 0 {
		return s.stores[s.table.Default()].Settle(ctx, now, outcomes)
	}
	known, unknown := s.tasks.split(len(outcomes), func(i int) queue.ID { return outcomes[i].ID })
	answers := make([]error, len(outcomes))
	settle := func(g int, indexes []int) error {
		errs, err := s.stores[g].Settle(ctx, now, pick(outcomes, indexes))
		for i, answer := range errs {
			answers[indexes[i]] = answer
		}
		return err
	}
	var searchErr error
	var search sync.WaitGroup
	if len(unknown) > 0 { // beside the others, because a group that does not answer must not delay them
		search.Go(func() { searchErr = s.searchOutcomes(ctx, now, outcomes, unknown, answers) })
	}
	err := s.each(slices.Collect(maps.Keys(known)), func(g int) error { return settle(g, known[g]) })
	search.Wait()
	if err = errors.Join(err, searchErr); err != nil {
		return nil, err
	}
	return answers, nil
}

// searchOutcomes settles outcomes of tasks whose groups are not known, at all groups at once, until each
// outcome is accepted by a group. A group that does not have a task answers that its outcome is stale, or
// refuses the outcome by the limits of the group, which may be lower than those of the group of the task:
// so an error is the answer only if no group accepts the outcome.
func (s *Store) searchOutcomes(
	ctx context.Context, now time.Time, outcomes []queue.Outcome, unknown []int, answers []error,
) error {
	var mu sync.Mutex // guards the variables below, and answers
	accepted, left := make([]bool, len(outcomes)), len(unknown)
	return s.search(ctx, s.all(), func(ctx context.Context, g int) (all bool, err error) {
		errs, err := s.stores[g].Settle(ctx, now, pick(outcomes, unknown))
		if err != nil {
			return false, err
		}
		mu.Lock()
		defer mu.Unlock()
		for i, at := range unknown {
			switch {
			case accepted[at]:
			case errs[i] == nil:
				answers[at], accepted[at] = nil, true
				left--
			case answers[at] == nil || errors.Is(answers[at], queue.ErrStale):
				answers[at] = errs[i]
			}
		}
		return left == 0, nil
	})
}

// Heartbeat is as [queue.Store] says. The tasks of a group that does not answer within 3 s
// have the answer [queue.Answer.Missing], unless no group answers.
func (s *Store) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	parts, unknown := s.tasks.split(len(heartbeats), func(i int) queue.ID { return heartbeats[i].ID })
	for name := range w.Kinds {
		g := s.table.Of(name)
		parts[g] = append(parts[g], nil...)
	}
	if len(parts) == 0 {
		parts[s.table.Default()] = nil
	}
	answers := make([]queue.Answer, len(heartbeats))
	send := func(g int, heartbeats []queue.Heartbeat, indexes []int, among int) error {
		part, stop := partOf(ctx, among)
		defer stop()
		got, err := s.stores[g].Heartbeat(part, now, s.table.worker(w, g), pick(heartbeats, indexes))
		for i, at := range indexes {
			if err == nil {
				answers[at] = got[i]
			} else {
				answers[at] = queue.Answer{Missing: true}
			}
		}
		return err
	}
	var mu sync.Mutex
	failed := 0
	sendAll := func(parts map[int][]int, among int) error {
		return s.each(slices.Sorted(maps.Keys(parts)), func(g int) error {
			err := send(g, heartbeats, parts[g], among)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed++
			}
			return err
		})
	}
	err := sendAll(parts, len(parts))
	if err != nil && (failed == len(parts) || errors.Is(err, queue.ErrTooLarge) || ctx.Err() != nil) {
		return nil, err
	}
	if len(unknown) == 0 {
		return answers, nil
	}
	// A group may refuse a checkpoint of a task that it does not have, by a limit that is lower than that of
	// the group of the task: so a checkpoint is sent only when the group is known.
	light := slices.Clone(heartbeats)
	for i := range light {
		light[i].Checkpoint = nil
	}
	found := s.searchHeartbeats(heartbeats, unknown, answers, func(g int, indexes []int) error {
		return send(g, light, indexes, len(s.stores))
	})
	if err := sendAll(found, len(s.stores)); errors.Is(err, queue.ErrTooLarge) || err != nil && ctx.Err() != nil {
		return nil, err
	}
	return answers, nil
}

// searchHeartbeats sends heartbeats of tasks whose group is not known to all groups in turn, until one
// has the task. It remembers these groups, and returns the indexes of their tasks that have checkpoints. An
// answer that is missing stays so, because that group may have the task.
func (s *Store) searchHeartbeats(
	heartbeats []queue.Heartbeat, unknown []int, answers []queue.Answer, send func(g int, indexes []int) error,
) map[int][]int {
	found := make(map[int][]int)
	missing := make(map[int]bool)
	for _, g := range s.all() {
		if len(unknown) == 0 {
			break
		}
		if err := send(g, unknown); err != nil {
			for _, i := range unknown {
				missing[i] = true
			}
			continue
		}
		unknown = slices.DeleteFunc(unknown, func(i int) bool {
			if answers[i].Stop == queue.StopLost {
				return false
			}
			s.tasks.put(heartbeats[i].ID, g)
			if heartbeats[i].Checkpoint != nil {
				found[g] = append(found[g], i)
			}
			return true
		})
	}
	for _, i := range unknown {
		if missing[i] {
			answers[i] = queue.Answer{Missing: true}
		}
	}
	return found
}

// Command is as [queue.Store] says, but that a command for several groups takes the oldest
// tasks of the default group first, then those of the others. One for tasks whose groups are all
// known asks no other group.
func (s *Store) Command(ctx context.Context, now time.Time, c queue.Command) (total int, err error) {
	if c.Filter.Queue != "" {
		return s.stores[s.table.Of(c.Filter.Queue)].Command(ctx, now, c)
	}
	groups := s.all()
	if ids := c.Filter.IDs; len(ids) > 0 {
		known, unknown := s.tasks.split(len(ids), func(i int) queue.ID { return ids[i] })
		if len(unknown) == 0 {
			groups = slices.DeleteFunc(groups, func(g int) bool { return known[g] == nil })
		}
	}
	left := c
	for _, g := range groups {
		n, err := s.stores[g].Command(ctx, now, left)
		total += n
		if err != nil {
			return total, err
		}
		if c.Limit > 0 {
			if left.Limit = c.Limit - total; left.Limit <= 0 {
				break
			}
		}
	}
	return total, nil
}

// Listen is as [queue.Store] says.
func (s *Store) Listen(name string) (ready <-chan struct{}, stop func()) {
	return s.stores[s.table.Of(name)].Listen(name)
}

// Close closes the stores of all groups.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.each(s.all(), func(g int) error { return s.stores[g].Close() })
	s.probes.Wait()
	return err
}
