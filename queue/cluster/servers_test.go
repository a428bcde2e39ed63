package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint/internal/dbserver"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"
	"github.com/stintgo/stint/queue/storetest"
)

// databases are the servers of all tests, which start at the first use. What they keep does
// not outlive them.
var databases struct {
	mu       sync.Mutex
	dir      string
	original *dbserver.Postgres
	postgres *dbserver.Server
	redis    string // the address
	stop     []func()
}

func TestMain(m *testing.M) {
	if config := os.Getenv(childVariable); config != "" {
		childMain(config)
	}
	code := m.Run()
	for _, stop := range databases.stop {
		stop()
	}
	_ = os.RemoveAll(databases.dir)
	os.Exit(code)
}

// directory returns a directory that the account of a server can enter. The caller holds
// the lock.
func directory() (string, error) {
	if databases.dir == "" {
		dir, err := os.MkdirTemp("", "stint-cluster-")
		if err != nil {
			return "", err
		}
		databases.dir = dir
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // see above
			return "", err
		}
	}
	dir, err := os.MkdirTemp(databases.dir, "server-")
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // see above
	}
	return dir, err
}

// postgresServer starts a PostgreSQL server.
func postgresServer(settings ...string) (*dbserver.Server, error) {
	dir, err := directory()
	if err != nil {
		return nil, err
	}
	if databases.original == nil {
		databases.original, err = dbserver.NewPostgres(dir, func(string) error { return nil })
		if err != nil {
			return nil, err
		}
		if dir, err = directory(); err != nil {
			return nil, err
		}
	}
	return databases.original.Run(dir, settings...)
}

// sharedPostgres returns the URL of the PostgreSQL server of all tests.
func sharedPostgres(t *testing.T) string {
	t.Helper()
	databases.mu.Lock()
	defer databases.mu.Unlock()
	if databases.postgres == nil {
		s, err := postgresServer("fsync=off", "synchronous_commit=off")
		if err != nil {
			t.Fatal(err)
		}
		databases.postgres, databases.stop = s, append(databases.stop, s.Stop)
	}
	return databases.postgres.DSN
}

// sharedRedis returns the URL of the Redis server of all tests.
func sharedRedis(t *testing.T) string {
	t.Helper()
	databases.mu.Lock()
	defer databases.mu.Unlock()
	if databases.redis == "" {
		dir, err := directory()
		if err == nil {
			err = dbserver.NeedRedis()
		}
		if err != nil {
			t.Fatal(err)
		}
		address, stop, err := dbserver.Redis(dir, dbserver.EverySec)
		if err != nil {
			t.Fatal(err)
		}
		databases.redis, databases.stop = address, append(databases.stop, stop)
	}
	return "redis://" + databases.redis
}

// stores numbers the stores on the servers.
var stores atomic.Int64

// kind is a kind of store, by name in the tests.
type kind struct {
	name string
	// opener returns what opens a new, empty store.
	opener func(t *testing.T, cfg storetest.Config) cluster.Opener
}

// kinds are all stores that a cluster may have.
var kinds = []kind{{"PostgreSQL", onPostgres}, {"Redis", onRedis}}

func onPostgres(t *testing.T, cfg storetest.Config) cluster.Opener {
	t.Helper()
	url, schema := sharedPostgres(t), fmt.Sprintf("cluster %d", stores.Add(1))
	return func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
		return pgstore.Open(ctx, url, pgstore.Config{
			Schema: schema, Name: self.Name, Contact: self.Contact, MaxPayload: cfg.MaxPayload,
			MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint, WatchBuffer: cfg.WatchBuffer,
		})
	}
}

func onRedis(t *testing.T, cfg storetest.Config) cluster.Opener {
	t.Helper()
	url, prefix := sharedRedis(t), fmt.Sprintf("cluster-%d", stores.Add(1))
	return func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
		return redisstore.Open(ctx, url, redisstore.Config{
			Prefix: prefix, Name: self.Name, Contact: self.Contact, MaxPayload: cfg.MaxPayload,
			MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint, WatchBuffer: cfg.WatchBuffer,
		})
	}
}

// open opens a node, and closes it when the test ends.
func open(t *testing.T, opener cluster.Opener, cfg cluster.Config) *cluster.Node {
	t.Helper()
	n, err := cluster.Open(t.Context(), opener, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, n) })
	return n
}

func closes(t *testing.T, n *cluster.Node) {
	t.Helper()
	if err := n.Close(); err != nil && !errors.Is(err, queue.ErrLed) {
		t.Error(err)
	}
}
