package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// Check returns every violation of the contract that the current state of a store and
// the steps of its tasks show. It checks that each task is in exactly one state, reached
// by legal transitions; that tokens grow, and the step that ends a lease has its token;
// that no more tasks run than the limits allow, and no more than one suspect per queue;
// that of two tasks with the same queue, tier, key and kind the older one started first;
// and that Stats counts the tasks that Find returns.
//
// The store must not be in use during the call. After a limit has been lowered, Check
// reports a violation until enough tasks have ended.
func Check(ctx context.Context, store queue.Store) error {
	tasks, err := everything(ctx, store, queue.Filter{})
	if err != nil {
		return err
	}
	settings, err := store.Settings(ctx)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	errs := []error{
		checkOrder(tasks), checkLimits(tasks, settings), checkWaits(tasks), checkSuspects(tasks),
		checkCounts(ctx, store, tasks),
	}
	for i := range tasks {
		if err := checkTask(&tasks[i]); err != nil {
			errs = append(errs, fmt.Errorf("task %s: %w\n%s", tasks[i].ID, err, life(tasks[i])))
		}
	}
	return errors.Join(errs...)
}

// everything returns all tasks that match a filter; it reads them page by page.
func everything(ctx context.Context, store queue.Store, f queue.Filter) (tasks []queue.Task, err error) {
	const limit = 50
	var after queue.ID
	for {
		page, err := store.Find(ctx, f, queue.Page{After: after, Limit: limit})
		if err != nil {
			return nil, fmt.Errorf("find: %w", err)
		}
		for _, t := range page {
			if compareIDs(after, t.ID) >= 0 {
				return nil, fmt.Errorf("found task %s after %s, which has a later ID", t.ID, after)
			}
			after = t.ID
		}
		if tasks = append(tasks, page...); len(page) < limit {
			return tasks, nil
		}
	}
}

func compareIDs(a, b queue.ID) int { return bytes.Compare(a[:], b[:]) }

// checkCounts compares the counts of Stats with the tasks that Find returns, by state.
func checkCounts(ctx context.Context, store queue.Store, tasks []queue.Task) error {
	var errs []error
	states := make(map[queue.ID]queue.State)
	for _, state := range queue.States() {
		found, err := everything(ctx, store, queue.Filter{States: []queue.State{state}})
		if err != nil {
			return err
		}
		for _, t := range found {
			if t.State != state || states[t.ID] != 0 {
				is := cmp.Or(states[t.ID], t.State)
				errs = append(errs, fmt.Errorf("task %s is %s, but Find returns it as %s", t.ID, is, state))
			}
			states[t.ID] = state
		}
	}
	if len(states) != len(tasks) {
		errs = append(errs, fmt.Errorf("found %d tasks by state, but %d without a filter", len(states), len(tasks)))
	}
	stats, err := store.Stats(ctx, time.Time{})
	if err != nil {
		return fmt.Errorf("stats: %w", err)
	}
	if got, want := counted(stats), count(tasks); !maps.Equal(got, want) {
		errs = append(errs, fmt.Errorf("counted %v with Stats, but %v with Find", got, want))
	}
	return errors.Join(errs...)
}

// number names one number of [queue.Stats].
type number struct {
	queue string
	state queue.State // zero: the tier counts
	tier  stint.Priority
}

// counted returns the numbers of stats without zeros, which a store may leave out.
func counted(stats queue.Stats) map[number]int {
	numbers := make(map[number]int)
	for name, c := range stats.Queues {
		for state, n := range c.States {
			numbers[number{queue: name, state: state}] = n
		}
		for tier, n := range c.Tiers {
			numbers[number{queue: name, tier: tier}] = n
		}
	}
	maps.DeleteFunc(numbers, func(_ number, n int) bool { return n == 0 })
	return numbers
}

func count(tasks []queue.Task) map[number]int {
	numbers := make(map[number]int)
	for _, t := range tasks {
		numbers[number{queue: t.Queue, state: t.State}]++
		if t.State == queue.Waiting || t.State == queue.Held {
			numbers[number{queue: t.Queue, tier: t.Tier}]++
		}
	}
	return numbers
}

// checkLimits compares the numbers of running tasks with the limits.
func checkLimits(tasks []queue.Task, settings map[string]queue.Configured) error {
	type owner struct{ queue, key string }
	var errs []error
	total, ofKeys := 0, make(map[string]int)
	queues, keys, groups := make(map[string]int), make(map[owner]int), make(map[owner]int)
	for _, t := range tasks {
		if t.State != queue.Running {
			continue
		}
		queues[t.Queue]++
		if total++; total == settings[""].InForce.Total+1 && total > 1 {
			errs = append(errs, fmt.Errorf("more than %d tasks of all queues run", total-1))
		}
		if ofKeys[t.Key]++; t.Key != "" && ofKeys[t.Key] == totalOfKey(settings, t.Key)+1 && ofKeys[t.Key] > 1 {
			errs = append(errs, fmt.Errorf("more than %d tasks of key %s of all queues run", ofKeys[t.Key]-1, t.Key))
		}
		if limit := inForce(settings, t.Queue).Max; limit > 0 && queues[t.Queue] == limit+1 {
			errs = append(errs, fmt.Errorf("more than %d tasks of queue %s run", limit, t.Queue))
		}
		key, group := owner{t.Queue, t.Key}, owner{t.Queue, t.Group}
		keys[key]++
		limit := limitOfKey(settings, t.Queue, t.Key)
		if t.Key != "" && limit > 0 && keys[key] == limit+1 {
			errs = append(errs, fmt.Errorf("more than %d tasks of key %s of queue %s run", limit, t.Key, t.Queue))
		}
		if groups[group]++; t.Group != "" && groups[group] > 1 {
			errs = append(errs, fmt.Errorf("two tasks of group %s of queue %s run", t.Group, t.Queue))
		}
	}
	return errors.Join(errs...)
}

// inForce returns the settings in force for a queue.
func inForce(settings map[string]queue.Configured, name string) queue.Layer {
	if is, set := settings[name]; set {
		return is.InForce
	}
	return settings[""].InForce
}

// limitOfKey returns how many tasks of a key of a queue may run at once; 0 means no limit.
func limitOfKey(settings map[string]queue.Configured, name, key string) int {
	for _, name := range []string{name, ""} {
		own := settings[name].Keys[key]
		if value, _, set := own.Value(queue.FieldMax); set {
			return value.Max
		}
	}
	return inForce(settings, name).PerKey
}

// totalOfKey returns how many tasks of a key of all queues may run at once; 0 means no limit.
func totalOfKey(settings map[string]queue.Configured, key string) int {
	own := settings[""].Keys[key]
	if value, _, set := own.Value(queue.FieldTotal); set {
		return value.Total
	}
	return settings[""].InForce.TotalPerKey
}

// checkWaits finds tasks that run before their predecessors have succeeded.
func checkWaits(tasks []queue.Task) error {
	var errs []error
	states := make(map[queue.ID]queue.State)
	for _, t := range tasks {
		states[t.ID] = t.State
	}
	for _, t := range tasks {
		for _, id := range t.After {
			if state := states[id]; t.State == queue.Running && state != 0 && state != queue.Succeeded {
				errs = append(errs, fmt.Errorf("task %s runs, but its predecessor %s is %s", t.ID, id, state))
			}
		}
	}
	return errors.Join(errs...)
}
