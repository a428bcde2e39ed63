package machine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

func hourly(ids *queue.IDs, name string) queue.Reschedule {
	return queue.Reschedule{Name: name, To: &queue.ScheduleState{
		Schedule: queue.Schedule{Name: name, Cron: "@hourly", Task: queue.Spec{Kind: "kind"}},
		Version:  ids.New(start), Next: start,
	}}
}

func TestC8_ScheduleThatIsTooLong(t *testing.T) {
	m := open(t, newRows())
	var ids queue.IDs
	for what, lengthen := range map[string]func(*queue.Reschedule){
		"name": func(r *queue.Reschedule) { r.Name = strings.Repeat("s", 201); r.To.Name = r.Name },
		"cron": func(r *queue.Reschedule) { r.To.Cron = strings.Repeat("*", 1001) },
		"zone": func(r *queue.Reschedule) { r.To.Zone = strings.Repeat("z", 201) },
		"the reason": func(r *queue.Reschedule) {
			r.To.Paused = &queue.Pause{Reason: strings.Repeat("r", queue.MaxReason+1)}
		},
	} {
		r := hourly(&ids, "s")
		lengthen(&r)
		err := m.Reschedule(t.Context(), start, r)
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

// A full disk refuses ticks, and lets an operator stop them.
func TestC8_SchedulesOnAFullDisk(t *testing.T) {
	full := error(nil)
	m, err := machine.Open(newRows(), machine.Config{Room: func() error { return full }})
	if err != nil {
		t.Fatal(err)
	}
	var ids queue.IDs
	r := hourly(&ids, "s")
	if err := m.Reschedule(t.Context(), start, r); err != nil {
		t.Fatal(err)
	}
	full = errors.New("the disk is full")
	tick := hourly(&ids, "s")
	tick.Was, tick.Tasks = r.To.Version, []queue.NewTask{newTask(&ids, queue.Spec{})}
	if err := m.Reschedule(t.Context(), start, tick); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("a tick: error %v, want %v", err, queue.ErrUnavailable)
	}
	pause := hourly(&ids, "s")
	pause.Was, pause.To.Paused = r.To.Version, &queue.Pause{By: "operator"}
	if err := m.Reschedule(t.Context(), start, pause); err != nil {
		t.Errorf("a pause: error %v", err)
	}
}

func TestC6_UnreadableSchedule(t *testing.T) {
	r := newRows()
	var ids queue.IDs
	if err := open(t, r).Reschedule(t.Context(), start, hourly(&ids, "nightly")); err != nil {
		t.Fatal(err)
	}
	for key := range r.all {
		r.all[key] = []byte("garbage")
	}
	if _, err := machine.Open(r, machine.Config{}); err == nil || !strings.Contains(err.Error(), "nightly") {
		t.Errorf("error %v, want one that names the schedule", err)
	}
}

// Rows of schedules that were written before queue.ScheduleState existed can be read.
func TestC8_ScheduleRowOfAnEarlierVersion(t *testing.T) {
	const row = `{"name":"nightly","cron":"30 4 * * *","zone":"Europe/Berlin","missed":"skip","skip_overlap":true,` +
		`"task":{"kind":"report","payload":"e30="},"paused":{"by":"ann","since":"2026-11-23T04:30:00Z"},` +
		`"version":"01000000-0000-0000-0000-000000000000","next":"2026-11-24T04:30:00Z",` +
		`"last":{"at":"2026-11-23T04:30:00Z","task":"02000000-0000-0000-0000-000000000000"},` +
		`"error":"it was full","retry":"2026-11-23T04:31:00Z"}`
	r := newRows()
	var ids queue.IDs
	if err := open(t, r).Reschedule(t.Context(), start, hourly(&ids, "nightly")); err != nil {
		t.Fatal(err)
	}
	for key := range r.all {
		r.all[key] = []byte(row)
	}
	all, err := open(t, r).Schedules(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("schedules %+v, error %v", all, err)
	}
	if text, err := json.Marshal(all[0]); err != nil || string(text) != row {
		t.Errorf("the row\n%s\nis read as\n%s, error %v", row, text, err)
	}
}
