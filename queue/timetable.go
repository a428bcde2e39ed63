package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue/cron"
)

// timetable has the ticks of a schedule.
type timetable struct {
	cron cron.Schedule
	zone *time.Location
}

// timetable parses the cron expression and loads the zone.
func (s *Schedule) timetable() (timetable, error) {
	expr, err := cron.Parse(s.Cron)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	zone, zoneErr := time.LoadLocation(s.Zone)
	switch {
	case s.Zone == "Local":
		zoneErr = fmt.Errorf("%w: the zone Local may differ between the processes of a queue: name it, as Europe/Berlin",
			ErrInvalid)
	case zoneErr != nil:
		zoneErr = fmt.Errorf("%w: this machine knows no time zone %q: give a name of the IANA database, as in "+
			"Europe/Berlin; if it is one, the machine may lack that database, which is in the package tzdata",
			ErrInvalid, s.Zone)
	}
	return timetable{expr, zone}, errors.Join(err, zoneErr)
}

// next returns the first tick after both of two times; zero if there is none.
func (t timetable) next(after, other time.Time) time.Time {
	if other.After(after) {
		after = other
	}
	tick, _ := t.cron.Next(after.In(t.zone))
	return tick
}

// tickChunk is the largest number of ticks whose tasks are submitted by one call.
const tickChunk = 100

// due returns the ticks that need a task, the oldest first, and the tick after them,
// which may be due as well. If the schedule's next tick is not due, it stays the next: a
// cursor never moves back.
func (t timetable) due(s *ScheduleState, now time.Time) (ticks []time.Time, next time.Time) {
	if now.Before(s.Next) {
		return nil, s.Next
	}
	most := 1
	if s.Missed == MissedAll {
		most = MissedMax
	}
	ticks = t.newest(s.Next, now, most)
	if s.Missed == MissedSkip && now.Sub(ticks[0]) > TickGrace {
		ticks = nil
	}
	if len(ticks) > tickChunk {
		return ticks[:tickChunk], ticks[tickChunk]
	}
	return ticks, t.next(now, s.Last.At)
}

// newest returns the last n ticks, at most, from the tick first to now, the oldest first.
// Ticks can only be computed forward, and there may be millions, so newest searches the
// last second, then the last two, then four, until there are enough.
func (t timetable) newest(first, now time.Time, n int) []time.Time {
	gap := now.Sub(first)
	for span := min(time.Second, gap); ; span *= 2 {
		if span >= gap/2 {
			span = gap
		}
		ticks := t.between(now.Add(-span), now, n)
		switch {
		case len(ticks) == n:
			return ticks
		case span < gap:
		case len(ticks) == 0: // first is a tick only by another version of the time zones
			return []time.Time{first.In(t.zone)}
		default:
			return ticks
		}
	}
}

// between returns the last n ticks from one time to another.
func (t timetable) between(from, to time.Time, n int) (ticks []time.Time) {
	for at := from.Add(-1).In(t.zone); ; {
		tick, ok := t.cron.Next(at)
		if !ok || tick.After(to) {
			return ticks
		}
		if at = tick; len(ticks) == n {
			ticks = ticks[1:]
		}
		ticks = append(ticks, tick)
	}
}
