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
	parse  func(text string) (int, error)
	logger *slog.Logger
}

// change makes the number what a text says, unless that is empty, and returns it with
// how many run. What runs above a lower number comes to its end.
func (j *jobs) change(to string) (most, running int, err error) {
	if to != "" {
		n, err := j.parse(to)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: %w", queue.ErrInvalid, err)
		}
		j.slots.Resize(n)
		j.conns.most.Store(connectionsFor(openFiles(), n))
		j.logger.Info("commands at once", slog.Int("now", n))
	}
	st := j.slots.Stats()
	return st.Limit, st.Running, nil
}
