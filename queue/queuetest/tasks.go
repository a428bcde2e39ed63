package queuetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
)

// All returns the tasks that match a filter, the oldest first.
func All(tb testing.TB, q *queue.Queue, f queue.Filter) []queue.Task {
	tb.Helper()
	var all []queue.Task
	for task, err := range q.Find(tb.Context(), f) {
		if err != nil {
			tb.Fatalf("find tasks: %v", err)
		}
		all = append(all, task)
	}
	return all
}

// Only returns the task that matches a filter. It ends the test unless exactly one does.
func Only(tb testing.TB, q *queue.Queue, f queue.Filter) queue.Task {
	tb.Helper()
	all := All(tb, q, f)
	if len(all) != 1 {
		tb.Fatalf("there are %d such tasks, want one%s", len(all), lives(all))
	}
	return all[0]
}

// Want returns a task, and ends the test if it is in another state than state.
func Want(tb testing.TB, q *queue.Queue, id queue.ID, state queue.State) queue.Task {
	tb.Helper()
	task, err := q.Get(tb.Context(), id)
	if err != nil {
		tb.Fatalf("want a task that is %s: %v", state, err)
	}
	if task.State != state {
		tb.Fatalf("want a task that is %s, this is\n%s", state, Life(&task))
	}
	return task
}

// Life describes the state and the history of a task, one step per line, for test
// messages.
func Life(task *queue.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "task %s of kind %q: %s", task.ID, task.Kind, task.State)
	for _, h := range task.Holds {
		fmt.Fprintf(&b, ", %s %s", h.Code, h.What)
	}
	b.WriteByte('\n')
	for _, s := range task.Steps {
		fmt.Fprintf(&b, "\t%12s %s → %s", s.At.Sub(task.Submitted), s.On, s.To)
		for _, text := range []string{s.By, s.Detail} {
			if text != "" {
				b.WriteString(" · " + text)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func lives(all []queue.Task) string {
	const most = 5
	var b strings.Builder
	for i := range all {
		if i == most {
			b.WriteString("\nand others")
			break
		}
		b.WriteString("\n" + Life(&all[i]))
	}
	return b.String()
}
