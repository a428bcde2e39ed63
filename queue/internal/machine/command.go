package machine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/stintgo/stint/queue"
)

// Command is as [queue.Store] says.
func (m *Machine) Command(ctx context.Context, now time.Time, c queue.Command) (changed int, err error) {
	switch c.Do {
	case queue.OnPause, queue.OnResume, queue.OnCancel, queue.OnRetry, queue.OnForget, queue.OnEdit:
	default:
		return 0, fmt.Errorf("%w: a command cannot %s tasks", queue.ErrInvalid, c.Do)
	}
	if err := cmp.Or(c.Validate(), validateEdit(&c)); err != nil {
		return 0, err
	}
	if c.Limit < 0 {
		return 0, fmt.Errorf("%w: the limit is %d; it is 0 for none, or more", queue.ErrInvalid, c.Limit)
	}
	s := newSearch(c.Filter, queue.ID{}, false)
	s.do, s.most = c.Do, partCommand
	limit := cmp.Or(c.Limit, math.MaxInt)
	var (
		bad      unread
		cascades []*waiters // begin when the command has found all its tasks: it must not find those that they cancel
	)
	for err == nil && !s.done && changed < limit {
		if err = m.part(s, func() error { return m.steps.beginChange(ctx, now) }); err != nil {
			break
		}
		if err = m.steps.beginChange(ctx, now); err == nil {
			m.cascades.postponed = &cascades
			changed += m.commands.all(s, c, limit-changed, &bad)
			m.cascades.postponed = nil
			if s.done || changed >= limit {
				m.cascades.start(&cascades)
			}
			err = m.steps.end(ctx)
		}
	}
	if len(cascades) > 0 { // the command ended early
		m.beginCascades(&cascades)
	}
	return changed, cmp.Or(err, bad.err())
}

// beginCascades begins the cascades of a command that ended early. If the machine has
// been closed, the next one begins them: its rows must not be read any more.
func (m *Machine) beginCascades(cascades *[]*waiters) {
	m.steps.lockCorrected()
	defer m.steps.mu.Unlock()
	if !m.steps.closed {
		m.cascades.start(cascades)
		m.steps.seal()
	}
}

// concerns reports whether a command, or 0 for a question, may be about a task. Only those are forgotten
// that were finished before: not those, too, that are cancelled because another one
// is forgotten.
func concerns(do queue.Trigger, t *task) bool {
	switch do {
	case queue.OnForget:
		return t.state.Finished()
	case 0, queue.OnRetry:
		return true
	default:
		return !t.state.Finished()
	}
}
