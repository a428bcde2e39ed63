package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

func (n *naive) Schedules(context.Context) ([]queue.ScheduleState, error) {
	end, err := n.begin(time.Time{})
	if err != nil {
		return nil, err
	}
	defer end()
	var all []queue.ScheduleState
	for _, name := range slices.Sorted(maps.Keys(n.schedules)) {
		var s queue.ScheduleState
		if err := json.Unmarshal(n.schedules[name], &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (n *naive) Reschedule(_ context.Context, now time.Time, r queue.Reschedule) error {
	if err := n.validReschedule(r); err != nil {
		return err
	}
	end, err := n.begin(now)
	if err != nil {
		return err
	}
	defer end()
	var is queue.ScheduleState
	text, there := n.schedules[r.Name]
	if there {
		if err := json.Unmarshal(text, &is); err != nil {
			return err
		}
	}
	switch {
	case r.To == nil && !there, r.To != nil && there && is.Version == r.To.Version:
		return nil
	case is.Version != r.Was:
		return queue.ErrChanged
	}
	if _, err := n.submit(r.Tasks); err != nil {
		return err
	}
	if r.To == nil {
		delete(n.schedules, r.Name)
		return nil
	}
	n.schedules[r.Name], err = json.Marshal(r.To)
	return err
}

func (n *naive) validReschedule(r queue.Reschedule) error {
	s := r.To
	switch {
	case r.Name == "":
		return fmt.Errorf("%w: it has no name", queue.ErrInvalid)
	case s == nil && (r.Was.IsZero() || len(r.Tasks) > 0):
		return fmt.Errorf("%w: it is removed, of version %s, with %d tasks", queue.ErrInvalid, r.Was, len(r.Tasks))
	case s == nil:
		return nil
	case s.Name != r.Name || s.Version.IsZero() || s.Version == r.Was || s.Cron == "":
		return fmt.Errorf("%w: it becomes %+v", queue.ErrInvalid, s)
	case !slices.Contains([]queue.Missed{"", queue.MissedOnce, queue.MissedSkip, queue.MissedAll}, s.Missed):
		return fmt.Errorf("%w: %q is no policy", queue.ErrInvalid, s.Missed)
	default:
		return n.valid(&queue.NewTask{ID: s.Version, Spec: s.Task})
	}
}
