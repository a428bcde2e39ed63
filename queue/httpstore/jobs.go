package httpstore

import (
	"context"
	"time"

	"github.com/stintgo/stint/internal/wire"
)

// Jobs returns how many tasks the server's own process may run at once, and how many it
// runs. If to is not empty, the first is set before: to a number such as 8, to 50% of the
// server's processors, to +2 or -1 relative to them, or to 0 for as many as its system
// allows. Workers in other processes are not affected, nor is the number at the server's
// next start. Notes describe the consequences of the change, and why the number
// differs from to. Errors: [queue.ErrInvalid]; [queue.ErrNotFound] if the server's
// process runs no tasks itself; [queue.ErrUnavailable].
func (s *Store) Jobs(ctx context.Context, now time.Time, to string) (most, running int, notes []string, err error) {
	if err := checkNames(to); err != nil {
		return 0, 0, nil, err
	}
	var out wire.JobsState
	_, err = s.call(ctx, now, wire.Jobs, wire.JobsCall{To: to}, &out)
	return out.Most, out.Running, out.Notes, err
}
