package server

import (
	"context"
	"fmt"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// jobs serves the call that returns, or changes, how many tasks this process may run
// at once.
func (s *Server) jobs(_ context.Context, _ time.Time, in wire.JobsCall) (wire.JobsState, error) {
	if s.cfg.Jobs == nil {
		return wire.JobsState{}, fmt.Errorf("%w: the process of this server runs no tasks", queue.ErrNotFound)
	}
	most, running, notes, err := s.cfg.Jobs(in.To)
	return wire.JobsState{Most: most, Running: running, Notes: notes}, err
}
