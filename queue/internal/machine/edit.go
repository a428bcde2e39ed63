package machine

import (
	"errors"
	"fmt"
	"maps"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// validateEdit checks the Edit of a command. OnEdit needs one, other commands have none.
func validateEdit(c *queue.Command) error {
	e := c.Edit
	switch {
	case c.Do != queue.OnEdit && e == nil:
		return nil
	case c.Do != queue.OnEdit:
		return fmt.Errorf("%w: the command %s has an Edit, which only edit can have", queue.ErrInvalid, c.Do)
	case e == nil || e.Tier == nil && e.Key == nil && e.RunAt == nil && e.Deadline == nil && len(e.Labels) == 0:
		return fmt.Errorf("%w: the edit sets no field", queue.ErrInvalid)
	}
	var errs []error
	if e.Tier != nil && !e.Tier.Valid() {
		errs = append(errs, fmt.Errorf("%w: tier %d is not one from %d to %d",
			queue.ErrInvalid, *e.Tier, stint.Lowest, stint.Highest))
	}
	if e.Key != nil && *e.Key != "" {
		errs = append(errs, checkName("key", *e.Key))
	}
	for label, value := range e.Labels {
		errs = append(errs, checkName("label", label))
		if value != "" {
			errs = append(errs, checkName("label "+label, value))
		}
	}
	return errors.Join(errs...)
}

// edit applies e to an unfinished task that is not running, and moves the task to where it
// belongs then. It leaves the task unchanged, and returns false, if that would make it invalid.
func (m *Machine) edit(t *task, row *record.Row, e *queue.Edit, w why) (changed bool) {
	s := row.Spec
	if e.Tier != nil {
		s.Tier = *e.Tier
	}
	if e.Key != nil {
		s.Key = *e.Key
	}
	if e.RunAt != nil {
		s.RunAt = *e.RunAt
	}
	if e.Deadline != nil {
		s.Deadline = *e.Deadline
	}
	if len(e.Labels) > 0 {
		s.Labels = maps.Clone(s.Labels) // other rows may share the map
		if s.Labels == nil {
			s.Labels = make(map[string]string, len(e.Labels))
		}
		maps.Copy(s.Labels, e.Labels)
	}
	late := !s.Deadline.IsZero() && !s.RunAt.IsZero() && !s.Deadline.After(s.RunAt)
	if late && (e.Deadline != nil || e.RunAt != nil) || len(s.Labels) > maxLabels {
		return false
	}
	row.Spec = s
	if e.RunAt != nil {
		row.RunAtEdited = m.clock.time()
	}
	if e.Deadline != nil {
		row.DeadlineEdited = m.clock.time()
	}
	to := queue.Paused
	if t.state != queue.Paused {
		to = m.transitions.pending(t, unix(row.RunAt))
	}
	m.transitions.step(m.queues.of(t), row, to, w)
	m.states.leave(t)
	t.tier = uint8(row.Tier - stint.Lowest)
	if t.rare != nil {
		m.states.deadlines.remove(t)
	}
	m.states.arm(t, row)
	m.states.enter(t, row, to)
	m.rows.write(t.id, row)
	return true
}
