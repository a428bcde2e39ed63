package pgstore

import (
	"context"
	"log/slog"
	"time"
)

// checkServer logs if the server does not keep what it confirms when it crashes.
func (r *rows) checkServer(ctx context.Context, log *slog.Logger) {
	const within = 2 * time.Second
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	var commit, fsync string
	err := r.pool.QueryRow(ctx, `select current_setting('synchronous_commit'), current_setting('fsync')`).
		Scan(&commit, &fsync)
	switch {
	case err != nil:
		log.Debug("the server does not say how it writes to disk", slog.Any("error", err))
	case fsync == "off":
		log.Warn("the server does not sync its files, so a loss of power can destroy all tasks: set fsync on")
	case commit == "off":
		log.Warn("the server confirms changes before they are on disk, so its crash loses those of the last 0.6 s or so: " +
			"set synchronous_commit on, or accept that")
	}
}
