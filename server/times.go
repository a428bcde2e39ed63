package server

import (
	"maps"
	"net/http"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// clocksAgree is the difference between the clocks of a client and the server up to
// which times are not converted: the call itself takes time, and a time that a client has
// set should come back unchanged.
const clocksAgree = time.Second

// aheadOf returns how far the server's time now is ahead of the clock of the client of a
// call. It returns 0 if the two agree, or the client does not state its time.
func aheadOf(r *http.Request, now time.Time) time.Duration {
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
	case *wire.ConfigureCall:
		in.Change.Set.Paused = movePause(ahead, in.Change.Set.Paused)
	case *wire.PauseCall:
		in.Pause = movePause(ahead, in.Pause)
	case *wire.FindCall:
		move(ahead, &in.Filter.From, &in.Filter.To)
	case *queue.Command:
		move(ahead, &in.Filter.From, &in.Filter.To)
		if in.Edit != nil {
			move(ahead, in.Edit.RunAt, in.Edit.Deadline)
		}
	}
}

// toClient converts the times of an answer to the client's clock. Those of schedules are
// times of day and stay as they are.
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
			move(-ahead, &r.Since, &r.FreeAt, &r.Until, &r.SetBy.At, &r.LastSeen.At)
			for k := range r.Held {
				move(-ahead, &r.Held[k].Since)
			}
		}
	case *queue.Stats:
		moveStats(-ahead, out)
	case *wire.AllSettings:
		moveSettings(-ahead, out.Settings)
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

func moveStats(by time.Duration, s *queue.Stats) {
	for name, c := range s.Queues {
		move(by, &c.Oldest)
		moveLayers(by, &c.Limits)
		s.Queues[name] = c
	}
	moveLayers(by, &s.Total.Limits)
	for i := range s.Workers {
		move(by, &s.Workers[i].Since)
	}
	for i := range s.Nodes {
		move(by, &s.Nodes[i].Seen)
	}
	s.Lead = moveLead(by, s.Lead)
	for i := range s.Groups {
		s.Groups[i].Lead = moveLead(by, s.Groups[i].Lead)
	}
}

func moveSettings(by time.Duration, all map[string]queue.Configured) {
	for name, c := range all {
		moveLayers(by, &c.Program, &c.Operator, &c.InForce)
		c.Paused = movePause(by, c.Paused)
		c.Keys = maps.Clone(c.Keys)
		for key, l := range c.Keys {
			moveLayers(by, &l.Program, &l.Operator)
			c.Keys[key] = l
		}
		all[name] = c
	}
}

// moveLayers replaces the maps and pauses of layers, which may be those of the store.
func moveLayers(by time.Duration, layers ...*queue.Layer) {
	for _, l := range layers {
		l.Paused = movePause(by, l.Paused)
		l.From = maps.Clone(l.From)
		for field, origin := range l.From {
			move(by, &origin.At)
			l.From[field] = origin
		}
	}
}

func movePause(by time.Duration, p *queue.Pause) *queue.Pause {
	if p == nil {
		return nil
	}
	moved := *p
	move(by, &moved.Since)
	return &moved
}

func moveLead(by time.Duration, l *queue.Lead) *queue.Lead {
	if l == nil {
		return nil
	}
	moved := *l
	move(by, &moved.Since)
	return &moved
}

// move adds by to times, except nil and zero ones.
func move(by time.Duration, times ...*time.Time) {
	for _, t := range times {
		if t != nil && !t.IsZero() {
			*t = t.Add(by)
		}
	}
}
