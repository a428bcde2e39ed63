package server

import (
	"context"
	"fmt"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// jobs serves the call that asks how many tasks this process runs at once, or changes
// that.
func (s *Server) jobs(_ context.Context, _ time.Time, in wire.JobsCall) (wire.JobsState, error) {
	if s.cfg.Jobs == nil {
		return wire.JobsState{}, fmt.Errorf("%w: this server's process runs no tasks itself", queue.ErrNotFound)
	}
	most, running, notes, err := s.cfg.Jobs(in.To)
	return wire.JobsState{Most: most, Running: running, Notes: notes}, err
}
