package reference

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/stintgo/stint/queue"
)

// schedules is the schedules by name, as JSON, so that callers share no memory with them.
type schedules map[string][]byte

func (s schedules) get(name string) (*queue.ScheduleState, error) {
	text, there := s[name]
	if !there {
		return nil, nil
	}
	is := &queue.ScheduleState{}
	return is, json.Unmarshal(text, is)
}

func (s schedules) set(name string, to *queue.ScheduleState) (err error) {
	if to == nil {
		delete(s, name)
		return nil
	}
	s[name], err = json.Marshal(to)
	return err
}

// all returns the schedules in the order of their names.
func (s schedules) all() (all []queue.ScheduleState, err error) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		is, err := s.get(name)
		if err != nil {
			return nil, err
		}
		all = append(all, *is)
	}
	return all, nil
}

// Reschedules reports whether a call changes a schedule, nil if there is none of its name;
// a call that has been made before changes nothing. Errors: ErrChanged.
func Reschedules(is *queue.ScheduleState, r *queue.Reschedule) (changes bool, err error) {
	var version queue.ID
	if is != nil {
		version = is.Version
	}
	switch {
	case r.To == nil && is == nil, r.To != nil && is != nil && version == r.To.Version:
		return false, nil
	case version != r.Was:
		return false, queue.ErrChanged
	default:
		return true, nil
	}
}
