package pgstore

import (
	"context"

	"github.com/stintgo/stint/queue/internal/dbrows"
)

// OpenWrapped is Open with a function that replaces the database.
func OpenWrapped(ctx context.Context, url string, cfg Config, wrap func(dbrows.DB) dbrows.DB) (*Store, error) {
	return open(ctx, url, cfg, wrap)
}
