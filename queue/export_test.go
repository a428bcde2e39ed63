package queue

import "time"

// SetWall has schedules of this process go by another clock on the wall.
func (q *Queue) SetWall(wall func() time.Time) { q.wall = wall }

// Due is what a schedule does whose next tick has come.
func (s *ScheduleState) Due(now time.Time) (ticks []time.Time, next time.Time, err error) {
	table, err := s.timetable()
	if err != nil {
		return nil, next, err
	}
	ticks, next = table.due(s, now)
	return ticks, next, nil
}
