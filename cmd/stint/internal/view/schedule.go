package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/stintgo/stint/queue"
)

// Schedules writes a table of schedules, one on each line.
func Schedules(w io.Writer, schedules []queue.Schedule, now time.Time) error {
	t := table(w)
	_, _ = fmt.Fprintln(t, "NAME\tSTATE\tNEXT\tLAST\tCRON\tZONE\tWORK")
	for i := range schedules {
		s := &schedules[i]
		next := since(s.Next, now)
		if s.Paused != nil {
			next = "-"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(s.Name), scheduleState(s), next, since(s.Last.At, now),
			plain(s.Cron), cmp.Or(plain(s.Zone), "UTC"), Work(&queue.Task{Spec: s.Task}))
	}
	return t.Flush()
}

// scheduleState says whether a schedule ticks, and why not.
func scheduleState(s *queue.Schedule) string {
	const most = 50 // characters
	switch {
	case s.Paused != nil && s.Paused.Reason != "":
		return shorten("paused: "+plain(s.Paused.Reason), most)
	case s.Paused != nil:
		return "paused"
	case s.Error != "":
		return shorten("refused: "+plain(s.Error), most)
	case s.Next.IsZero():
		return "over"
	}
	return "active"
}

// Schedule is a schedule as the commands print it in JSON: the fields of
// [queue.Schedule], with a task that is shown as [Task] shows one.
type Schedule struct {
	queue.Schedule

	Task Spec `json:"task"`
}

// Spec is what a schedule submits: the fields of [queue.Spec], but with what a command
// is in words, and with a payload that is JSON as what it is.
type Spec struct {
	queue.Spec

	Command       *Command        `json:"command,omitempty"`
	Payload       json.RawMessage `json:"payload,omitempty"`
	PayloadBase64 []byte          `json:"payload_base64,omitempty"`
}

// ScheduleJSON returns a schedule as it is printed in JSON. The values of a command's
// variables are left out: they may be secrets.
func ScheduleJSON(s *queue.Schedule) Schedule {
	task := TaskJSON(&queue.Task{Spec: s.Task}, false)
	return Schedule{
		Schedule: *s,
		Task:     Spec{Spec: s.Task, Command: task.Command, Payload: task.Payload, PayloadBase64: task.PayloadBase64},
	}
}
