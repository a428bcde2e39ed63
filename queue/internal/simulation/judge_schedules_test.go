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

// cronTable is how often the expressions tick that are used here: at the multiples
// of it, since 1970.
var cronTable = map[string]time.Duration{
	"@every 7s": 7 * time.Second, "@every 20s": 20 * time.Second, "* * * * *": time.Minute,
}

// rota is what the judge knows of a schedule.
type rota struct {
	queue.ScheduleState
	ticks   map[int64]bool // that tasks were submitted for, since there is this schedule
	refused int            // least tasks for which there was no room, since it has ticked
}

// view is what somebody has seen who changes schedules: a ticker, or an operator.
type view struct {
	operator string // empty for a ticker
	at       time.Time
	busy     map[queue.ID]bool // whether tasks were unfinished when they were looked at
}

// tickAfter is the first tick after a time.
func tickAfter(cron string, at time.Time) time.Time {
	every := int64(cronTable[cron] / time.Second)
	return time.Unix((at.Unix()/every+1)*every, 0)
}

// later is the later one of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// reschedules applies the rules to a change of a schedule.
func (j *judge) reschedules(r *queue.Reschedule) (changes bool, err error) {
	if s := j.schedules[r.Name]; s != nil {
		return reference.Reschedules(&s.ScheduleState, r)
	}
	return reference.Reschedules(nil, r)
}

// noRoom notes that a queue had no room for the tasks of a schedule.
func (j *judge) noRoom(r *queue.Reschedule) {
	if s := j.schedules[r.Name]; s != nil && (s.refused == 0 || len(r.Tasks) < s.refused) {
		s.refused = len(r.Tasks)
	}
}

// rescheduled takes a change of a schedule into the account, if it can be.
func (j *judge) rescheduled(c *call) {
	r := c.args.(queue.Reschedule)
	is := j.schedules[r.Name]
	switch changes, err := j.reschedules(&r); {
	case err != nil:
		j.broken(nil, "schedule %s is changed from a version that it does not have", r.Name)
		return
	case !changes:
		if c.events > 0 {
			j.broken(nil, "schedule %s is as it should be already, and %d events come", r.Name, c.events)
		}
		return
	case r.To == nil:
		delete(j.schedules, r.Name)
		return
	case c.view.operator != "":
		j.declared(c, is, &r)
	default:
		j.ticked(c, is, &r)
	}
	to := &rota{ScheduleState: *r.To, ticks: make(map[int64]bool)}
	if is != nil {
		if to.ticks = is.ticks; len(r.Tasks) == 0 {
			to.refused = is.refused
		}
	}
	j.schedules[r.Name] = to
}

// declared looks at a schedule that an operator, or a program, has changed.
func (j *judge) declared(c *call, is *rota, r *queue.Reschedule) {
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
		j.broken(nil, "%s changes schedule %s with %d tasks, so that %s comes next after %s: want %s",
			c.view.operator, r.Name, len(r.Tasks), to.Next.Sub(j.w.begun), to.Last.Task, next.Sub(j.w.begun))
	}
}

// ticked looks at a schedule that a node has had tick.
func (j *judge) ticked(c *call, is *rota, r *queue.Reschedule) {
	to := r.To
	if is == nil || is.Paused != nil || is.Next.After(c.view.at) {
		j.broken(nil, "%s has schedule %s tick, which is %+v", c.who.name, r.Name, is)
		return
	}
	if !sameSchedule(&is.ScheduleState, to) {
		j.broken(nil, "%s makes another schedule of %+v: %+v", c.who.name, is.ScheduleState, to)
	}
	if len(r.Tasks) == 0 && to.Next.Equal(is.Next) {
		if is.refused != 1 || to.Error == "" || to.Last.Task != is.Last.Task || to.Retry.Sub(c.view.at) > time.Minute {
			j.broken(nil, "schedule %s is put off: %+v", r.Name, to)
		}
		return
	}
	want, next := is.due(c.view.at)
	if is.SkipOverlap && len(want) > 0 && !is.Last.Task.IsZero() {
		busy, looked := c.view.busy[is.Last.Task]
		if !looked {
			j.broken(nil, "%s has not looked at the last task of schedule %s", c.who.name, r.Name)
		}
		if busy {
			want = nil
		}
	}
	// A queue that has no room for all of them may have some.
	if some := len(r.Tasks); is.refused > 0 && some > 0 && some < len(want) {
		want, next = want[:some], want[some]
	}
	if len(want) != len(r.Tasks) || !to.Next.Equal(next) {
		j.broken(nil, "schedule %s, whose next was %s, has %d tasks at %s, and %s comes next: want %d, and %s", r.Name,
			is.Next.Sub(j.w.begun), len(r.Tasks), c.view.at.Sub(j.w.begun), to.Next.Sub(j.w.begun),
			len(want), next.Sub(j.w.begun))
		return
	}
	last := is.Last.Task
	for i := range r.Tasks {
		j.tickOf(is, &r.Tasks[i], want[i])
		last = r.Tasks[i].ID
	}
	if to.Last.Task != last {
		j.broken(nil, "the last task of schedule %s is said to be %s: want %s", r.Name, to.Last.Task, last)
	}
}

// due is for which ticks there are to be tasks when the next one of a schedule has
// come, and which is next then.
func (s *rota) due(now time.Time) (ticks []time.Time, next time.Time) {
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

// tickOf looks at the task of a tick.
func (j *judge) tickOf(is *rota, t *queue.NewTask, want time.Time) {
	at, err := time.Parse(time.RFC3339, t.Labels["tick"])
	if err != nil || !at.Equal(want) || t.Labels["schedule"] != is.Name {
		j.broken(nil, "schedule %s submits a task with the labels %v: want %s", is.Name, t.Labels, want)
	}
	spec := t.Spec
	spec.Labels = nil
	if !reflect.DeepEqual(spec, is.Task) {
		j.broken(nil, "schedule %s submits %+v: want %+v", is.Name, spec, is.Task)
	}
	if is.ticks[at.Unix()] {
		j.broken(nil, "schedule %s submits a second task for %s", is.Name, at.Sub(j.w.begun))
	}
	is.ticks[at.Unix()] = true
}

// sameSchedule reports whether two are the same in what users set.
func sameSchedule(a, b *queue.ScheduleState) bool {
	return a.Cron == b.Cron && a.Zone == b.Zone && a.Missed == b.Missed && a.SkipOverlap == b.SkipOverlap &&
		a.Paused == nil && b.Paused == nil && reflect.DeepEqual(a.Task, b.Task)
}

// lookedUp compares what somebody has found with the account, when a task was asked
// for.
func (j *judge) lookedUp(c *call) {
	found := c.answer.([]queue.Task)
	for _, id := range c.args.([]queue.ID) {
		l := j.lives[id]
		there := l != nil && !l.forgotten
		// One whose disk has failed may show what that does not have.
		if !j.w.ill && (there != (len(found) == 1) || there && recorded(&found[0]) != l.State) {
			j.broken(l, "%s asks for it and finds %+v", c.who.name, found)
		}
		c.view.busy[id] = len(found) == 1 && !found[0].State.Finished()
	}
}

// listed compares all schedules with the account.
func (j *judge) listed(found []queue.ScheduleState) {
	names := slices.Sorted(maps.Keys(j.schedules))
	if len(found) != len(names) {
		j.broken(nil, "there are %d schedules; want %d", len(found), len(names))
		return
	}
	for i, name := range names {
		is, _ := json.Marshal(found[i])
		if want, _ := json.Marshal(j.schedules[name].ScheduleState); string(is) != string(want) {
			j.broken(nil, "a schedule is %s; want %s", is, want)
		}
	}
}

// copiedSchedules is the account of schedules as it is now.
func (j *judge) copiedSchedules() map[string]*rota {
	all := make(map[string]*rota)
	for name, s := range j.schedules {
		same := *s
		same.ticks = maps.Clone(s.ticks)
		all[name] = &same
	}
	return all
}

// overdue finds schedules that do not tick though nothing goes wrong.
func (j *judge) overdue(late time.Duration) {
	wall := j.w.client.wall()
	if j.w.now().Before(j.w.plots.calmFrom.Add(2*late + time.Minute)) { // nobody puts a tick off for longer
		return
	}
	for _, name := range slices.Sorted(maps.Keys(j.schedules)) {
		s := j.schedules[name]
		full := s.refused == 1 && j.rules.Settings.InForce(s.Task.Queue).Pending > 0
		if s.Paused == nil && !full && s.Next.Add(late).Before(wall) {
			j.broken(nil, "schedule %s has not ticked, and was to at %s", name, s.Next.Sub(j.w.begun))
		}
	}
}
