package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// reschedules makes, changes or removes one of two schedules, or has it tick,
// from the version that it has or from another.
func (m *model) reschedules() error {
	r := m.changeOfSchedule()
	m.with = r
	again := 1 + sometimes(m.rnd, 5, 1)
	for range again {
		got := m.Store.Reschedule(m.Context(), m.now, r)
		want := m.right.Reschedule(m.Context(), m.now, r)
		done, err := both(got, want)
		if err != nil && (got == nil || want == nil) { // else which mistake is found first is open
			return err
		}
		for _, t := range r.Tasks {
			if done {
				m.ids = append(m.ids, t.ID)
			}
		}
	}
	return m.compareSchedules()
}

// changeOfSchedule returns a change, which may be impossible.
func (m *model) changeOfSchedule() queue.Reschedule {
	name := pick(m.rnd, "s0", "s1")
	_, all := m.schedules()
	i := slices.IndexFunc(all, func(s queue.ScheduleState) bool { return s.Name == name })
	to := m.hourly(name)
	var was queue.ID
	if i >= 0 {
		to, was = all[i], all[i].Version
		to.Version = m.trial.ids.New(m.now)
	}
	if m.rnd.IntN(10) == 0 {
		was = pick(m.rnd, queue.ID{}, to.Version, m.trial.ids.New(m.now))
	}
	r := queue.Reschedule{Name: name, Was: was, To: &to}
	switch m.rnd.IntN(6) {
	case 0:
		r.To = nil
	case 1:
		to.Cron, to.Zone, to.Task = "@daily", "UTC", m.spec()
	case 2:
		to.Paused = sometimes(m.rnd, 2, &queue.Pause{By: "b", Since: m.now})
	default:
		for range 1 + m.rnd.IntN(3) {
			t := queue.NewTask{ID: m.trial.ids.New(m.now), Spec: m.spec()}
			to.Last = queue.Tick{At: to.Next, Task: t.ID}
			to.Next = to.Next.Add(time.Hour)
			r.Tasks = append(r.Tasks, t)
		}
	}
	return r
}

func (m *model) compareSchedules() error {
	_, got := m.schedules()
	want, err := m.right.Schedules(m.Context())
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("there are the schedules\n%+v, want\n%+v", got, want)
	}
	for i := range got {
		got[i].Task, want[i].Task = plainSpec(got[i].Task), plainSpec(want[i].Task)
		if g, w := inUTC(got[i]), inUTC(want[i]); !reflect.DeepEqual(g, w) {
			return fmt.Errorf("the schedule is\n%+v, want\n%+v", g, w)
		}
	}
	return nil
}

// plainSpec has what means the same in a task compare equal.
func plainSpec(s queue.Spec) queue.Spec { return plain(queue.Task{Spec: s}).Spec }
