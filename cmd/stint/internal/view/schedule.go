package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/stintgo/stint/queue"
)

// Schedules prints a table of schedules, one per line.
func Schedules(w io.Writer, schedules []queue.ScheduleState, now time.Time) error {
	t := table(w)
	_, _ = fmt.Fprintln(t, "NAME\tSTATE\tNEXT\tLAST\tCRON\tZONE\tWORK")
	for i := range schedules {
		s := &schedules[i]
		next := since(s.Next, now)
		if s.Paused != nil {
			next = "-"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", Plain(s.Name), scheduleState(s), next, since(s.Last.At, now),
			Plain(s.Cron), cmp.Or(Plain(s.Zone), "UTC"), Work(&queue.Task{Spec: s.Task}))
	}
	return t.Flush()
}

// scheduleState says whether a schedule ticks, and if not, why.
func scheduleState(s *queue.ScheduleState) string {
	const most = 50 // characters
	switch {
	case s.Paused != nil && s.Paused.Reason != "":
		return shorten("paused: "+Plain(s.Paused.Reason), most)
	case s.Paused != nil:
		return "paused"
	case s.Error != "":
		return shorten("refused: "+Plain(s.Error), most)
	case s.Next.IsZero():
		return "over"
	}
	return "active"
}

// Schedule is a schedule as it is printed in JSON: the fields of [queue.ScheduleState], with
// its task as [Spec].
type Schedule struct {
	queue.ScheduleState

	Task Spec `json:"task"`
}

// Spec is the task of a schedule: the fields of [queue.Spec], with the command as
// readable fields, and a payload that is JSON as JSON.
type Spec struct {
	queue.Spec

	Command       *Command        `json:"command,omitempty"`
	Payload       json.RawMessage `json:"payload,omitempty"`
	PayloadBase64 []byte          `json:"payload_base64,omitempty"`
}

// ScheduleJSON returns a schedule as it is printed in JSON. It omits the values of a
// command's variables, which may be secrets.
func ScheduleJSON(s *queue.ScheduleState) Schedule {
	task := TaskJSON(&queue.Task{Spec: s.Task}, false)
	return Schedule{
		ScheduleState: *s,
		Task:          Spec{Spec: s.Task, Command: task.Command, Payload: task.Payload, PayloadBase64: task.PayloadBase64},
	}
}
