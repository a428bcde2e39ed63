package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/relocate"
)

// Place is the store in a directory as a place that [relocate.Move] moves tasks from or to.
// A move waits for no space on a full disk, and does not use cfg.MayLose.
//
// Errors: [queue.ErrInvalid] if cfg is not valid.
func Place(dir string, cfg Config) (relocate.Place, error) {
	if err := cfg.validate(); err != nil {
		return relocate.Place{}, err
	}
	cfg = cfg.withDefaults()
	cfg.MayLose = 0
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	return relocate.Place{Name: dir, Open: func(_ context.Context, create bool) (*relocate.Rows, error) {
		if _, err := os.Stat(dir); !create && errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: there is no store: %w", queue.ErrInvalid, err)
		}
		r, err := openRows(dir, cfg, vfs.Default, func(*pebble.Options) {})
		if err != nil {
			return nil, fmt.Errorf("%w: open the store in %s: %w", queue.ErrUnavailable, dir, err)
		}
		return &relocate.Rows{Rows: r, Leases: r.leaseLog, Epoch: r.epoch}, nil
	}}, nil
}
