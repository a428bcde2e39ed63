package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"
)

// hosted is a store on a database server, which one server at a time leads.
type hosted interface {
	queue.Store

	// Lost returns a channel that is closed when another server leads.
	Lost() <-chan struct{}
}

// errDeposed ends a server whose store another server leads now.
var errDeposed = errors.New("another server leads the store now")

// leadEvery is the interval between two tries to lead. A server that ends gives up its
// lease; that of a killed one ends after 5 s.
const leadEvery = 500 * time.Millisecond

// openStore opens the store that cfg names. If another server leads it, openStore waits
// until this one can lead, or ctx ends.
func openStore(ctx context.Context, cfg *Config) (store queue.Store, err error) {
	open, err := opener(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Store == "" {
		err = retryWhile(ctx, cfg.Patience, syscall.EAGAIN, func() error {
			store, err = open(ctx)
			return err
		})
		return store, err
	}
	for waits := false; ; waits = true {
		store, err = open(ctx)
		if !errors.Is(err, queue.ErrLed) {
			return store, err
		}
		if !waits {
			cfg.Logger.Info("waiting to lead the store", slog.Any("reason", err))
		}
		select {
		case <-time.After(leadEvery):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// opener returns the function that opens the store.
func opener(cfg *Config) (func(context.Context) (queue.Store, error), error) {
	host, _ := os.Hostname()
	name := fmt.Sprintf("%s:%d", host, os.Getpid())
	switch scheme, _, _ := strings.Cut(cfg.Store, "://"); scheme {
	case "":
		return func(context.Context) (queue.Store, error) {
			return opened(filestore.Open(filepath.Join(cfg.Dir, storeName),
				filestore.Config{MinFree: cfg.MinFree, MaxPayload: payloadMax, Logger: cfg.Logger}))
		}, nil
	case "postgres", "postgresql":
		return func(ctx context.Context) (queue.Store, error) {
			return opened(pgstore.Open(ctx, cfg.Store,
				pgstore.Config{Name: name, MaxPayload: payloadMax, Logger: cfg.Logger}))
		}, nil
	case "redis", "rediss", "unix":
		logging.Disable() // the client's own log; what fails is logged with its remedy
		return func(ctx context.Context) (queue.Store, error) {
			return opened(redisstore.Open(ctx, cfg.Store,
				redisstore.Config{Name: name, MaxPayload: payloadMax, Logger: cfg.Logger}))
		}, nil
	default:
		return nil, fmt.Errorf("--store %.20q…: it begins with postgres://, redis:// or rediss://, or is left out for a "+
			"store in --dir", scheme)
	}
}

// opened turns a nil store into a nil interface.
func opened[S queue.Store](store S, err error) (queue.Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}

// lost returns a channel that is closed when another server leads the store; nil for a
// store that only one server can open.
func lost(store queue.Store) <-chan struct{} {
	if h, ok := store.(hosted); ok {
		return h.Lost()
	}
	return nil
}

// lockDir takes the directory of a server whose store is elsewhere. The kernel releases
// the lock when the process ends, so the file is never closed.
func lockDir(ctx context.Context, cfg *Config) error {
	if cfg.Store == "" {
		return nil // the store in it has a lock
	}
	path := filepath.Join(cfg.Dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = retryWhile(ctx, cfg.Patience, syscall.EAGAIN, func() error {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		return fmt.Errorf("%s: another server uses this directory; choose another with --dir: %w", cfg.Dir, err)
	}
	cfg.lock = f
	return nil
}
