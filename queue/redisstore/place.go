package redisstore

import (
	"context"
	"errors"

	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/relocate"
)

// Place is the store that a URL and cfg.Prefix name as a place that [relocate.Move] moves
// tasks from or to. This process leads during the move.
//
// Errors: [queue.ErrInvalid] if url or cfg is not valid.
func Place(url string, cfg Config) (relocate.Place, error) {
	t, err := parse(url)
	if err = errors.Join(err, cfg.validate()); err != nil {
		return relocate.Place{}, err
	}
	cfg = cfg.withDefaults()
	name := t.name + ", prefix " + cfg.Prefix
	return relocate.Place{Name: name, Open: func(ctx context.Context, create bool) (*relocate.Rows, error) {
		ctx, giveUp := context.WithCancel(ctx)
		defer giveUp()
		r, err := lead(ctx, t, cfg, create, giveUp, func(db dbrows.DB) dbrows.DB { return db })
		if err != nil {
			return nil, err
		}
		return &relocate.Rows{Rows: r, Leases: r.LeaseLog(), Epoch: r.Epoch(), GiveUp: r.GiveUp, Room: r.Room}, nil
	}}, nil
}
