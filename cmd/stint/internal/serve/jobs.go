package serve

import (
	"fmt"
	"log/slog"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// jobs is the number of commands that a server runs at once. It is safe for concurrent
// use.
type jobs struct {
	slots  stint.Scheduler
	conns  *connections
	parse  func(text string) (n int, note string, err error)
	logger *slog.Logger
}

// change sets the number to the value of a text, unless that is empty, and returns it
// with the number of running commands and messages about the change. Running commands
// above a lower number continue to their end.
func (j *jobs) change(to string) (most, running int, notes []string, err error) {
	if to != "" {
		n, note, err := j.parse(to)
		if err != nil {
			return 0, 0, nil, fmt.Errorf("%w: %w", queue.ErrInvalid, err)
		}
		j.slots.Resize(n)
		j.conns.most.Store(connectionsFor(openFiles(), n))
		j.logger.Info("commands at once", slog.Int("now", n))
		notes = j.note(note)
	}
	st := j.slots.Stats()
	return st.Limit, st.Running, notes, nil
}

// fewConnections is a number of connections so small that a few calls of wait and logs -f
// keep other clients out.
const fewConnections = 16

// note logs and returns messages about the number of commands: that it is lower than
// asked for, unless cut is empty, and that it leaves few connections.
func (j *jobs) note(cut string) (notes []string) {
	if cut != "" {
		j.logger.Warn("fewer commands at once than asked for", slog.String("why", cut))
		notes = append(notes, cut)
	}
	if most := j.conns.most.Load(); most < fewConnections {
		j.logger.Warn("few connections are left for clients: run fewer commands at once, or raise the limit on open files "+
			"(ulimit -n)", slog.Int64("connections", most))
		notes = append(notes, fmt.Sprintf("the server has descriptors for %d connections besides these commands, and each "+
			"wait, logs -f and worker holds one: run fewer commands at once, or raise its limit on open files "+
			"(ulimit -n)", most))
	}
	return notes
}
