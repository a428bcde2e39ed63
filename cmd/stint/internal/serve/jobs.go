package serve

import (
	"fmt"
	"log/slog"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// jobs is how many commands a server runs at once. It is safe for concurrent use.
type jobs struct {
	slots  stint.Scheduler
	conns  *connections
	parse  func(text string) (n int, note string, err error)
	logger *slog.Logger
}

// change makes the number what a text says, unless that is empty, and returns it with
// how many run, and what is to be known of the change. What runs above a lower number
// comes to its end.
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

// fewConnections are so few that some calls of wait and logs -f keep other clients out.
const fewConnections = 16

// note logs what is to be known of the number of commands, and returns it: that it is not
// the one that was asked for, unless cut is empty, and that it leaves few connections.
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
