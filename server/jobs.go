package server

import (
	"context"
	"fmt"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// jobs is [Config.Jobs].
type jobs func(to string) (most, running int, notes []string, err error)

// call returns how many tasks this process may run at once, and changes that if the call says to.
func (j jobs) call(_ context.Context, _ time.Time, in wire.JobsCall) (wire.JobsState, error) {
	if j == nil {
		return wire.JobsState{}, fmt.Errorf("%w: the process of this server runs no tasks", queue.ErrNotFound)
	}
	most, running, notes, err := j(in.To)
	return wire.JobsState{Most: most, Running: running, Notes: notes}, err
}
