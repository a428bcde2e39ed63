package cluster

import (
	"context"
	"net/http"
)

// OpenAround is Open with a handler around what the leader serves.
func OpenAround(ctx context.Context, open Opener, cfg Config, around func(http.Handler) http.Handler) (*Node, error) {
	cfg.around = around
	return Open(ctx, open, cfg)
}
