package server

import (
	"net/http"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// clocksAgree is the difference between the clocks of a client and the server up to
// which times are not converted: the call itself takes time, and a time that a client has
// set should come back unchanged.
const clocksAgree = time.Second

// ahead returns how far the server's time now is ahead of the clock of the client of a
// call. It returns 0 if the two agree, or the client does not state its time.
func (s *Server) ahead(r *http.Request, now time.Time) time.Duration {
	client, err := time.Parse(time.RFC3339Nano, r.Header.Get(wire.Now))
	if err != nil || client.IsZero() {
		return 0
	}
	if ahead := now.Sub(client); ahead.Abs() >= clocksAgree {
		return ahead
	}
	return 0
}

// toServer converts the times of a call from the client's clock to the server's.
func toServer(in any, ahead time.Duration) {
	if ahead == 0 {
		return
	}
	switch in := in.(type) {
	case *wire.SubmitCall:
		for i := range in.Tasks {
			move(ahead, &in.Tasks[i].RunAt, &in.Tasks[i].Deadline)
		}
	case *wire.SettleCall:
		for i := range in.Outcomes {
			move(ahead, &in.Outcomes[i].RunAt)
		}
	case *wire.HeartbeatCall:
		move(ahead, &in.Worker.Since)
	case *wire.PauseCall:
		if in.Pause != nil {
			move(ahead, &in.Pause.Since)
		}
	case *wire.FindCall:
		move(ahead, &in.Filter.From, &in.Filter.To)
	case *queue.Command:
		move(ahead, &in.Filter.From, &in.Filter.To)
		if in.Edit != nil {
			move(ahead, in.Edit.RunAt, in.Edit.Deadline)
		}
	}
}

// toClient converts the times of an answer to the client's clock. Those of schedules
// are times of day and stay as they are.
func toClient(out any, ahead time.Duration) {
	if ahead == 0 {
		return
	}
	switch out := out.(type) {
	case *queue.Claimed:
		move(-ahead, &out.Next)
		moveTasks(-ahead, out.Tasks)
	case *wire.Tasks:
		moveTasks(-ahead, out.Tasks)
	case *wire.Reasons:
		for i := range out.Reasons {
			r := &out.Reasons[i]
			move(-ahead, &r.Since, &r.Until, &r.LastSeen.At)
		}
	case *queue.Stats:
		for name, c := range out.Queues {
			move(-ahead, &c.Oldest)
			out.Queues[name] = c
		}
		for i := range out.Workers {
			move(-ahead, &out.Workers[i].Since)
		}
	case *wire.Maintained:
		move(-ahead, &out.Next)
	case *queue.Event:
		move(-ahead, &out.At)
	}
}

func moveTasks(by time.Duration, tasks []queue.Task) {
	for i := range tasks {
		t := &tasks[i]
		move(by, &t.RunAt, &t.Deadline, &t.Submitted, &t.Changed, &t.Lease.Until)
		for k := range t.Steps {
			move(by, &t.Steps[k].At)
		}
	}
}

// move adds by to times, except nil and zero ones.
func move(by time.Duration, times ...*time.Time) {
	for _, t := range times {
		if t != nil && !t.IsZero() {
			*t = t.Add(by)
		}
	}
}
