// Package router makes one store of several: each queue belongs to a group, and each group
// has a store of its own.
package router

// The files:
//
//   - table.go: which queue belongs to which group
//   - store.go: Store, and the calls on tasks: Claim, Settle, Heartbeat, Command
//   - fanout.go: makes one call at several groups
//   - maintain.go: Maintain, which does not wait for slow groups
//   - submit.go: Submit, and what does not cross groups
//   - read.go: the calls that read
//   - watch.go: Watch
//   - admin.go: settings and schedules
//   - groupstore.go: a store that refuses the queues of other groups
//   - groupcache.go: the groups of tasks that are known

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
)

// Member is a group in a table.
type Member struct {
	Name   string
	Queues []string // none for the default group, which has all queues that no other group names
	Store  string   // names the store; "" if the name is not known
}

// Table has the group of each queue. It does not change, and is safe for concurrent use.
type Table struct {
	members []Member
	of      map[string]int
	rest    int
}

// NewTable returns the table of some groups. Errors: [queue.ErrInvalid], with every problem.
func NewTable(members []Member) (*Table, error) {
	t := &Table{members: members, of: make(map[string]int), rest: -1}
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: groups: "+format, append([]any{queue.ErrInvalid}, args...)...))
	}
	for i, m := range members {
		if m.Name == "" || slices.ContainsFunc(members[:i], func(o Member) bool { return o.Name == m.Name }) {
			bad("the name %q of group %d is empty or used twice", m.Name, i)
		}
		if len(m.Queues) == 0 {
			if t.rest >= 0 {
				bad("%s and %s have no queues: one group only is the default for all other queues", members[t.rest].Name, m.Name)
			}
			t.rest = i
		}
		for _, name := range m.Queues {
			name = queueOf(name)
			if at, ok := t.of[name]; ok {
				bad("queue %s is in %s and in %s", name, members[at].Name, m.Name)
			}
			t.of[name] = i
		}
	}
	if t.rest < 0 {
		bad("each has queues: one group without queues is needed for all others")
	}
	return t, errors.Join(errs...)
}

// Len returns the number of groups.
func (t *Table) Len() int { return len(t.members) }

// Default returns the number of the default group.
func (t *Table) Default() int { return t.rest }

// Name returns the name of a group.
func (t *Table) Name(group int) string { return t.members[group].Name }

// Queues returns the queues that a group names; none for the default group.
func (t *Table) Queues(group int) []string { return slices.Clone(t.members[group].Queues) }

// Share is what a table says about one group.
type Share struct {
	Queues []string `json:"queues,omitempty"` // that the group names; none for the default group
	Others []string `json:"others,omitempty"` // that other groups name
	// Stores are the names of the stores of all groups, as far as they are known.
	Stores map[string]string `json:"stores,omitempty"`
}

// Share returns what the table says about a group.
func (t *Table) Share(group int) (s Share) {
	for name, of := range t.of {
		if of == group {
			s.Queues = append(s.Queues, name)
		} else {
			s.Others = append(s.Others, name)
		}
	}
	slices.Sort(s.Queues)
	slices.Sort(s.Others)
	s.Stores = make(map[string]string)
	for _, m := range t.members {
		if m.Store != "" {
			s.Stores[m.Name] = m.Store
		}
	}
	return s
}

// Elsewhere returns a group that has another store in o than in s, "" if there is none.
func (s Share) Elsewhere(o Share) (group string) {
	for _, name := range slices.Sorted(maps.Keys(s.Stores)) {
		if other := o.Stores[name]; other != "" && other != s.Stores[name] {
			return name
		}
	}
	return ""
}

// Equal reports whether two tables have the same queues for a group.
func (s Share) Equal(o Share) bool {
	return slices.Equal(s.Queues, o.Queues) && slices.Equal(s.Others, o.Others)
}

// NamedElsewhere reports whether another group names a queue.
func (s Share) NamedElsewhere(name string) bool { return slices.Contains(s.Others, queueOf(name)) }

// String names the queues, for messages.
func (s Share) String() string {
	switch {
	case len(s.Queues) > 0:
		return "the queues " + strings.Join(s.Queues, ", ")
	case len(s.Others) > 0:
		return "all queues but " + strings.Join(s.Others, ", ")
	default:
		return "all queues"
	}
}

// Of returns the group of a queue.
func (t *Table) Of(name string) int {
	if g, ok := t.of[queueOf(name)]; ok {
		return g
	}
	return t.rest
}

// queueOf returns the queue that a name stands for.
func queueOf(name string) string {
	if name == "" {
		return queue.DefaultQueue
	}
	return name
}

// worker returns a worker with its queues of one group.
func (t *Table) worker(w queue.Worker, group int) queue.Worker {
	kinds := make(map[string][]string)
	for name, of := range w.Kinds {
		if t.Of(name) == group {
			kinds[name] = of
		}
	}
	w.Kinds = kinds
	return w
}
