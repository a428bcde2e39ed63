package upload

import (
	"context"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/queue"
)

// IsServerGone reports whether an error of a call means that the server has ended.
func IsServerGone(err error) bool { return gone(err) != err } //nolint:errorlint // gone wraps it or not

// Follow adds uploads to a store, and follows them until they are finished or ctx ends.
func Follow(ctx context.Context, cfg *Config, store queue.Store) (Sum, error) {
	f := &follower{cfg: cfg, mine: make(map[queue.ID]*queue.NewTask), failed: make(map[queue.ID]*int)}
	return f.follow(ctx, remote.On(store))
}
