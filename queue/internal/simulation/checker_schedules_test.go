package simulation_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
)

// cronTable has the period of each cron expression of the simulation. It ticks at the
// multiples of the period since 1970.
var cronTable = map[string]time.Duration{
	"@every 7s": 7 * time.Second, "@every 20s": 20 * time.Second, "* * * * *": time.Minute,
}

// scheduleModel is the checker's model of a schedule.
type scheduleModel struct {
	queue.ScheduleState
	ticks   map[int64]bool // the ticks for which tasks were submitted
	refused int            // ticks without tasks because the queue had no room; a lower bound
}

// view is what the author of a change of schedules, a ticker or an operator, has read.
type view struct {
	operator string // empty for a ticker
	at       time.Time
	busy     map[queue.ID]bool // whether the author has seen unfinished tasks
}

// tickAfter returns the first tick after a time.
func tickAfter(cron string, at time.Time) time.Time {
	every := int64(cronTable[cron] / time.Second)
	return time.Unix((at.Unix()/every+1)*every, 0)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// reschedules applies the rules to a change of a schedule.
func (ch *checker) reschedules(r *queue.Reschedule) (changes bool, err error) {
	if s := ch.schedules[r.Name]; s != nil {
		return reference.Reschedules(&s.ScheduleState, r)
	}
	return reference.Reschedules(nil, r)
}

// noRoom records that a queue had no room for the tasks of a schedule.
func (ch *checker) noRoom(r *queue.Reschedule) {
	if s := ch.schedules[r.Name]; s != nil && (s.refused == 0 || len(r.Tasks) < s.refused) {
		s.refused = len(r.Tasks)
	}
}

// rescheduled checks and applies a change of a schedule.
func (ch *checker) rescheduled(c *call) {
	r := c.args.(queue.Reschedule)
	is := ch.schedules[r.Name]
	switch changes, err := ch.reschedules(&r); {
	case err != nil:
		ch.broken(nil, "schedule %s is changed from a version that it does not have", r.Name)
		return
	case !changes:
		if c.events > 0 {
			ch.broken(nil, "schedule %s is as it should be already, and %d events come", r.Name, c.events)
		}
		return
	case r.To == nil:
		delete(ch.schedules, r.Name)
		return
	case c.view.operator != "":
		ch.declared(c, is, &r)
	default:
		ch.ticked(c, is, &r)
	}
	to := &scheduleModel{ScheduleState: *r.To, ticks: make(map[int64]bool)}
	if is != nil {
		if to.ticks = is.ticks; len(r.Tasks) == 0 {
			to.refused = is.refused
		}
	}
	ch.schedules[r.Name] = to
}

// declared checks a change of a schedule by an operator or a program.
func (ch *checker) declared(c *call, is *scheduleModel, r *queue.Reschedule) {
	to, next := r.To, tickAfter(r.To.Cron, c.view.at)
	var last queue.Tick
	if is != nil {
		last, next = is.Last, tickAfter(to.Cron, later(c.view.at, is.Last.At))
		resumed := is.Paused != nil && to.Paused == nil
		if !resumed && is.Cron == to.Cron && is.Zone == to.Zone {
			next = is.Next
		}
	}
	if len(r.Tasks) > 0 || !to.Next.Equal(next) || to.Last.Task != last.Task {
		ch.broken(nil, "%s changes schedule %s with %d tasks, so that %s comes next after %s: want %s",
			c.view.operator, r.Name, len(r.Tasks), to.Next.Sub(ch.w.begun), to.Last.Task, next.Sub(ch.w.begun))
	}
}

// ticked checks a change of a schedule by a ticker.
func (ch *checker) ticked(c *call, is *scheduleModel, r *queue.Reschedule) {
	to := r.To
	if is == nil || is.Paused != nil || is.Next.After(c.view.at) {
		ch.broken(nil, "%s ticks schedule %s, which is %+v", c.author.name, r.Name, is)
		return
	}
	if !sameSchedule(&is.ScheduleState, to) {
		ch.broken(nil, "%s changes schedule %+v to %+v", c.author.name, is.ScheduleState, to)
	}
	if len(r.Tasks) == 0 && to.Next.Equal(is.Next) {
		if is.refused != 1 || to.Error == "" || to.Last.Task != is.Last.Task || to.Retry.Sub(c.view.at) > time.Minute {
			ch.broken(nil, "schedule %s is put off: %+v", r.Name, to)
		}
		return
	}
	want, next := is.due(c.view.at)
	if is.SkipOverlap && len(want) > 0 && !is.Last.Task.IsZero() {
		busy, looked := c.view.busy[is.Last.Task]
		if !looked {
			ch.broken(nil, "%s has not read the last task of schedule %s", c.author.name, r.Name)
		}
		if busy {
			want = nil
		}
	}
	// A queue without room for all of the tasks may have room for some.
	if some := len(r.Tasks); is.refused > 0 && some > 0 && some < len(want) {
		want, next = want[:some], want[some]
	}
	if len(want) != len(r.Tasks) || !to.Next.Equal(next) {
		ch.broken(nil, "schedule %s, whose next was %s, has %d tasks at %s, and %s comes next: want %d, and %s", r.Name,
			is.Next.Sub(ch.w.begun), len(r.Tasks), c.view.at.Sub(ch.w.begun), to.Next.Sub(ch.w.begun),
			len(want), next.Sub(ch.w.begun))
		return
	}
	last := is.Last.Task
	for i := range r.Tasks {
		ch.tickOf(is, &r.Tasks[i], want[i])
		last = r.Tasks[i].ID
	}
	if to.Last.Task != last {
		ch.broken(nil, "the last task of schedule %s is said to be %s: want %s", r.Name, to.Last.Task, last)
	}
}

// due returns the ticks that need a task when the next tick of a schedule has come, and
// the tick after them.
func (s *scheduleModel) due(now time.Time) (ticks []time.Time, next time.Time) {
	const missedMost, chunk = 1000, 100
	for at := s.Next; !at.After(now); at = tickAfter(s.Cron, at) {
		ticks = append(ticks, at)
	}
	next = tickAfter(s.Cron, later(now, s.Last.At))
	newest := ticks[len(ticks)-1]
	switch s.Missed {
	case queue.MissedAll:
		ticks = ticks[max(0, len(ticks)-missedMost):]
		if len(ticks) > chunk {
			next, ticks = ticks[chunk], ticks[:chunk]
		}
		return ticks, next
	case queue.MissedSkip:
		if now.Sub(newest) > time.Minute {
			return nil, next
		}
	default:
	}
	return []time.Time{newest}, next
}

// tickOf checks the task of a tick.
func (ch *checker) tickOf(is *scheduleModel, t *queue.NewTask, want time.Time) {
	at, err := time.Parse(time.RFC3339, t.Labels["tick"])
	if err != nil || !at.Equal(want) || t.Labels["schedule"] != is.Name {
		ch.broken(nil, "schedule %s submits a task with the labels %v: want %s", is.Name, t.Labels, want)
	}
	spec := t.Spec
	spec.Labels = nil
	if !reflect.DeepEqual(spec, is.Task) {
		ch.broken(nil, "schedule %s submits %+v: want %+v", is.Name, spec, is.Task)
	}
	if is.ticks[at.Unix()] {
		ch.broken(nil, "schedule %s submits a second task for %s", is.Name, at.Sub(ch.w.begun))
	}
	is.ticks[at.Unix()] = true
}

// sameSchedule reports whether two schedules agree in the fields that users set.
func sameSchedule(a, b *queue.ScheduleState) bool {
	return a.Cron == b.Cron && a.Zone == b.Zone && a.Missed == b.Missed && a.SkipOverlap == b.SkipOverlap &&
		a.Paused == nil && b.Paused == nil && reflect.DeepEqual(a.Task, b.Task)
}

// lookedUp checks the result of Find, when a call has asked for one task.
func (ch *checker) lookedUp(c *call) {
	found := c.answer.([]queue.Task)
	for _, id := range c.args.([]queue.ID) {
		l := ch.lives[id]
		there := l != nil && !l.forgotten
		// A store whose disk has failed may show changes that the disk does not have.
		if !ch.w.ill && (there != (len(found) == 1) || there && recorded(&found[0]) != l.State) {
			ch.broken(l, "%s looks it up and finds %+v", c.author.name, found)
		}
		c.view.busy[id] = len(found) == 1 && !found[0].State.Finished()
	}
}

// listed checks the list of all schedules.
func (ch *checker) listed(found []queue.ScheduleState) {
	names := slices.Sorted(maps.Keys(ch.schedules))
	if len(found) != len(names) {
		ch.broken(nil, "there are %d schedules; want %d", len(found), len(names))
		return
	}
	for i, name := range names {
		is, _ := json.Marshal(found[i])
		if want, _ := json.Marshal(ch.schedules[name].ScheduleState); string(is) != string(want) {
			ch.broken(nil, "a schedule is %s; want %s", is, want)
		}
	}
}

// copiedSchedules returns a copy of the models of all schedules.
func (ch *checker) copiedSchedules() map[string]*scheduleModel {
	all := make(map[string]*scheduleModel)
	for name, s := range ch.schedules {
		same := *s
		same.ticks = maps.Clone(s.ticks)
		all[name] = &same
	}
	return all
}

// overdue checks that schedules tick while nothing goes wrong.
func (ch *checker) overdue(late time.Duration) {
	wall := ch.w.client.wall()
	if ch.w.now().Before(ch.w.scenario.calmFrom.Add(2*late + time.Minute)) { // the longest delay of a tick
		return
	}
	for _, name := range slices.Sorted(maps.Keys(ch.schedules)) {
		s := ch.schedules[name]
		full := s.refused == 1 && ch.rules.Settings.InForce(s.Task.Queue).Pending > 0
		if s.Paused == nil && !full && s.Next.Add(late).Before(wall) {
			ch.broken(nil, "schedule %s has not ticked, and was to at %s", name, s.Next.Sub(ch.w.begun))
		}
	}
}
