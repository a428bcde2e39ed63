package redisstore

import (
	"context"

	"github.com/stintgo/stint/queue/internal/dbrows"
)

// OpenWrapped is Open with a function that replaces the server.
func OpenWrapped(ctx context.Context, url string, cfg Config, wrap func(dbrows.DB) dbrows.DB) (*Store, error) {
	return open(ctx, url, cfg, wrap)
}

// NewDB returns the server alone.
func NewDB(url string, cfg Config) (dbrows.DB, error) {
	t, err := parse(url)
	if err != nil {
		return nil, err
	}
	return newRows(t.connect(), cfg.withDefaults(), func() {}), nil
}

// Describe returns how messages name the server of a URL.
func Describe(url string) (string, error) {
	t, err := parse(url)
	return t.name, err
}

// Explain adds the advice for an error of the client.
func Explain(err error) error { return explain(err) }

// PageBytes is the size of a page of Scan.
const PageBytes = pageBytes
