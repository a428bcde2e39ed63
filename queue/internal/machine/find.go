package machine

import (
	"context"
	"math"

	"github.com/stintgo/stint/queue"
)

// page is how many tasks a page has if nothing is said.
const page = 100

// Find is as [queue.Store] says. It answers what has been decided, which may not
// be durable yet.
func (m *Machine) Find(_ context.Context, f queue.Filter, p queue.Page) (found []queue.Task, err error) {
	if p.Limit <= 0 {
		p.Limit = page
	}
	s, left := newSearch(f, p.After, p.Newest), newAllowance(p.Limit, p.Bytes)
	for err == nil && !s.done && left.any() {
		if err = m.part(s, m.steps.lockOpen); err == nil {
			found, err = m.pageOf(s, found, &left)
		}
	}
	return found, err
}

// allowance is what an answer may still take.
type allowance struct{ tasks, bytes int }

// newAllowance returns that of an empty answer. A size of 0 bytes is no limit.
func newAllowance(tasks, size int) allowance {
	if size <= 0 {
		size = math.MaxInt
	}
	return allowance{tasks, size}
}

// any reports whether the answer may take another task.
func (a *allowance) any() bool { return a.tasks > 0 && a.bytes > 0 }

// take counts a task of the answer.
func (a *allowance) take(t *queue.Task) {
	a.tasks--
	a.bytes -= t.Size()
}

// views appends what a search has found to a page, as far as the page may take it.
func (m *Machine) pageOf(s *search, found []queue.Task, left *allowance) ([]queue.Task, error) {
	if err := m.steps.lockOpen(); err != nil {
		return nil, err
	}
	defer m.steps.mu.Unlock()
	for _, id := range s.ids {
		if !left.any() {
			break
		}
		f, _ := m.finder.match(s, id) // what cannot be read to tell is not found
		if f.task == nil {
			continue
		}
		if f.row == nil {
			row, _ := m.rows.readable(f.task)
			f.row = &row
		}
		found = append(found, m.views.view(f.task, f.row))
		left.take(&found[len(found)-1])
	}
	return found, nil
}
