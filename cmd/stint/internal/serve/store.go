package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9/logging"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"
)

// openStore opens the store that cfg names. The store on a database server is shared with
// other servers: this one is a node of their cluster.
func openStore(ctx context.Context, cfg *Config) (store queue.Store, err error) {
	if cfg.Store == "" {
		err = retryWhile(ctx, cfg.Patience, syscall.EAGAIN, func() error {
			store, err = opened(filestore.Open(filepath.Join(cfg.Dir, storeName),
				filestore.Config{MinFree: cfg.MinFree, MaxPayload: payloadMax, Logger: cfg.Logger}))
			return err
		})
		return store, err
	}
	open, err := opener(cfg, cfg.Store, "")
	if err != nil {
		return nil, err
	}
	cfg.forNodes = new(lateHandler)
	shared := cluster.Config{
		Listen: cfg.NodeListen, Address: cfg.NodeAddress, Route: route(cfg.Store),
		Handler: cfg.forNodes, Logger: cfg.Logger,
	}
	if len(cfg.Groups) == 0 {
		return opened(cluster.Open(ctx, open, shared))
	}
	groups := []cluster.Group{{Name: DefaultGroup, Open: open, Store: placeOf(cfg.Store, "", cfg.Logger)}}
	for _, g := range cfg.Groups {
		at := cmp.Or(g.Store, cfg.Store)
		if open, err = opener(cfg, at, g.Name); err != nil {
			return nil, fmt.Errorf("group %s: %w", g.Name, err)
		}
		groups = append(groups, cluster.Group{
			Name: g.Name, Queues: g.Queues, Open: open, Route: route(at), Store: placeOf(at, g.Name, cfg.Logger),
		})
	}
	return opened(cluster.OpenGroups(ctx, groups, shared))
}

// storeOf names the store of a server, without a password, and those of its groups: one a line.
func storeOf(cfg *Config) string {
	if cfg.Store == "" {
		return "this directory" // wherever it is
	}
	names := []string{placeOf(cfg.Store, "", cfg.Logger)}
	for _, g := range cfg.Groups {
		names = append(names, placeOf(cmp.Or(g.Store, cfg.Store), g.Name, cfg.Logger))
	}
	return strings.Join(names, "\n")
}

// placeOf names the store of a group on a database server, without a password.
func placeOf(url, group string, log *slog.Logger) string {
	place, err := Place(url, group, log)
	if err != nil {
		return "" // the store could not be opened
	}
	return place.Name
}

// DefaultGroup is the name of the group of all queues that no other group has.
const DefaultGroup = "default"

// Group is a group of queues in a store of its own.
type Group struct {
	Name   string
	Queues []string
	Store  string // the URL of its database server; empty: that of all
}

// schemaOf and prefixOf return the schema of PostgreSQL and the prefix of Redis of a group;
// "" is the default of both for the group "".
func schemaOf(group string) string {
	if group == "" || group == DefaultGroup {
		return ""
	}
	return "stint_" + group
}

func prefixOf(group string) string { return strings.Replace(schemaOf(group), "_", "-", 1) }

// opener returns the function that opens the store of a group on a database server to lead it.
// The first time, it waits for the server for as long as cfg.Patience says.
func opener(cfg *Config, url, group string) (cluster.Opener, error) {
	log := cfg.Logger
	patience := max(cfg.Patience, storePatience)
	switch scheme, _, _ := strings.Cut(url, "://"); scheme {
	case "postgres", "postgresql":
		return func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
			defer func() { patience = 0 }() // a node tries again by itself
			return pgstore.Open(ctx, url, pgstore.Config{
				Schema: schemaOf(group), Name: self.Name, Contact: self.Contact, Patience: patience,
				MaxPayload: payloadMax, Logger: log,
			})
		}, nil
	case "redis", "rediss", "unix":
		logging.Disable() // the log of the client library: errors are logged here, with a remedy
		return func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
			defer func() { patience = 0 }() // as above
			return redisstore.Open(ctx, url, redisstore.Config{
				Prefix: prefixOf(group), Name: self.Name, Contact: self.Contact, Patience: patience,
				MaxPayload: payloadMax, Logger: log,
			})
		}, nil
	default:
		return nil, fmt.Errorf("--store %.20q…: give a URL with postgres://, redis:// or rediss://, or leave it out for a "+
			"store in --dir", scheme)
	}
}

// storePatience is the least time to wait for a database server at the start.
const storePatience = 5 * time.Second

// route returns the host:port of the first database server that a URL names, or "" for one
// on this host, and for a URL that is not valid.
func route(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	if strings.HasPrefix(scheme, "postgres") { // the host may be a parameter, or PGHOST
		if c, err := pgconn.ParseConfig(address); err == nil {
			if network, hostPort := pgconn.NetworkAddress(c.Host, c.Port); network == "tcp" {
				return hostPort
			}
			return ""
		}
	}
	rest, _, _ = strings.Cut(rest, "/")
	rest, _, _ = strings.Cut(rest, "?")
	rest = rest[strings.LastIndex(rest, "@")+1:]
	host, _, _ := strings.Cut(rest, ",")
	port := "5432"
	if strings.HasPrefix(scheme, "redis") {
		port = "6379"
	}
	if at := strings.LastIndex(host, ":"); at > strings.LastIndex(host, "]") {
		host, port = host[:at], host[at+1:]
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || host == "" || scheme == "unix" {
		return ""
	}
	return host + ":" + port
}

// opened turns a nil store into a nil interface.
func opened[S queue.Store](store S, err error) (queue.Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
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
	const probing = 100 * time.Millisecond // more than InUse of another process keeps the lock
	err = retryWhile(ctx, max(cfg.Patience, probing), syscall.EAGAIN, func() error {
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	})
	if err != nil {
		return fmt.Errorf("%s: another server uses this directory; choose another with --dir: %w", cfg.Dir, err)
	}
	cfg.lock = f
	return nil
}

// InUse reports whether another process has locked the directory of a server: a server, also before it has
// opened its store and while it ends, or stint store copy. A process that has the store open must not call it,
// since closing a file releases all POSIX locks that the process has on it.
func InUse(dir string) bool {
	return isLocked(filepath.Join(dir, storeName, lockName), func(fd uintptr) bool {
		lock := syscall.Flock_t{Type: syscall.F_WRLCK}
		return syscall.FcntlFlock(fd, syscall.F_GETLK, &lock) == nil && lock.Type != syscall.F_UNLCK
	}) || isLocked(filepath.Join(dir, lockName), func(fd uintptr) bool {
		// This takes the lock for a moment, so lockDir always tries again.
		return errors.Is(syscall.Flock(int(fd), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EAGAIN)
	})
}

// isLocked reports whether the lock file at path exists and locked finds a lock on it.
func isLocked(path string, locked func(fd uintptr) bool) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return locked(f.Fd())
}
