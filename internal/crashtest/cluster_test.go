//go:build linux

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/stintgo/stint/internal/dbserver"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"
)

const (
	nodes = 5
	// nodeSlots are those of a node: together, three have more than the limits allow.
	nodeSlots = 4
	// leaderLease is so short that there are many changes of the leader.
	leaderLease = 600 * time.Millisecond
	// usualLease is what the stores have by default.
	usualLease = 0
)

// node works on the tasks of a cluster, and serves them at a socket of its place.
func node(dir, name, url string, lease time.Duration) error {
	logging.Disable() // the log of the Redis client
	n, err := openNode(context.Background(), name, url, lease)
	for said := ""; errors.Is(err, queue.ErrUnavailable); { // the database is starting
		if text := err.Error(); text != said {
			said = text
			fmt.Fprintln(os.Stderr, name, "cannot open the store yet:", text)
		}
		_ = pause(context.Background(), 50*time.Millisecond)
		n, err = openNode(context.Background(), name, url, lease)
	}
	if err != nil {
		return err
	}
	return serveAndWork(n, dir, socketOf(name), name, nodeSlots)
}

// socketOf returns the name of the socket of a node, which is that of its place.
func socketOf(name string) string { return name[:strings.LastIndex(name, "-")] }

func openNode(ctx context.Context, name, url string, lease time.Duration) (*cluster.Node, error) {
	return cluster.Open(ctx, func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
		return openHosted(ctx, url, self, lease)
	}, cluster.Config{Name: name, Listen: os.Getenv(processListen), Address: os.Getenv(processAddress)})
}

// openHosted opens the store on a database server.
func openHosted(ctx context.Context, url string, self queue.Leader, lease time.Duration) (cluster.Store, error) {
	if strings.HasPrefix(url, "redis:") {
		return redisstore.Open(ctx, url, redisstore.Config{Name: self.Name, Contact: self.Contact, Lease: lease})
	}
	return pgstore.Open(ctx, url, pgstore.Config{Name: self.Name, Contact: self.Contact, Lease: lease})
}

// database is a database server that is struck too.
type database struct {
	*dbserver.Server
	// cut breaks all connections of the server.
	cut func(ctx context.Context) error
}

func postgres(t *testing.T) database {
	t.Helper()
	dir := enterable(t)
	made, err := dbserver.NewPostgres(dir, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	s, err := made.Run(filepath.Join(dir, "server"))
	if err != nil {
		t.Fatal(err)
	}
	return database{s, func(ctx context.Context) error {
		c, err := pgx.Connect(ctx, s.DSN)
		if err != nil {
			return err
		}
		_, err = c.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity
			where pid <> pg_backend_pid() and backend_type = 'client backend'`)
		return errors.Join(err, c.Close(ctx))
	}}
}

func redisServer(t *testing.T) database {
	t.Helper()
	if err := dbserver.NeedRedis(); err != nil {
		t.Fatal(err)
	}
	s, err := dbserver.RunRedis(t.TempDir(), dbserver.Always)
	if err != nil {
		t.Fatal(err)
	}
	return database{s, func(ctx context.Context) error {
		options, err := redis.ParseURL(s.DSN)
		if err != nil {
			return err
		}
		c := redis.NewClient(options)
		return errors.Join(c.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err(), c.Close())
	}}
}

// enterable returns a directory that the account of a server can enter.
func enterable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stint-crash-") //nolint:usetesting // that of the test is closed to other accounts
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // see above
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestC11_KilledNodes kills and stops the nodes of a cluster at random, the leader among
// them, breaks their connections, and kills the database server, while tasks are submitted
// at all nodes. Afterwards it checks what TestC6_KilledProcesses checks.
func TestC11_KilledNodes(t *testing.T) {
	for name, start := range map[string]func(*testing.T) database{"PostgreSQL": postgres, "Redis": redisServer} {
		t.Run(name, func(t *testing.T) { killNodes(t, start(t)) })
	}
}

func killNodes(t *testing.T, db database) {
	t.Helper()
	t.Cleanup(db.Stop)
	rnd, dir := seeded.Rand(t), t.TempDir()
	f := startFleet(t, &fleet{dir: dir, url: db.DSN, lease: leaderLease}, slices.Repeat([]string{isNode}, nodes)...)
	var sockets []string
	for place := range nodes {
		sockets = append(sockets, filepath.Join(dir, fmt.Sprintf("%s-%d", isNode, place)))
	}
	store := configured(t, sockets[0])
	l, struck := newLedger(), make(map[string]int)
	harass(t, f, func() bool { return f.kills < nodeKills }, sockets, l, rnd, func(f *fleet, rnd *rand.Rand) {
		f.t.Helper()
		struck[strikeCluster(f, db, store, rnd)]++
	})
	began := time.Now()
	drain(t, store, 0)
	t.Logf("%d processes were killed, %v; what was left took %s", f.kills, struck,
		time.Since(began).Round(time.Millisecond))
	allSlots(t, store, dir, l)
	limit(t, store)
	f.end()
	checkStore(t, f, lastLeader(t, db.DSN), dir, l)
}

// lastLeader opens the store when the lease of a killed node has ended.
func lastLeader(t *testing.T, url string) queue.Store {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for {
		store, err := openHosted(ctx, url, queue.Leader{Name: "the test"}, leaderLease)
		if err == nil {
			return store
		}
		if !errors.Is(err, queue.ErrLed) || pause(ctx, leaderLease/4) != nil {
			t.Fatal(err)
		}
	}
}

// strikeCluster strikes a node or the database, and returns what it has done.
func strikeCluster(f *fleet, db database, store queue.Store, rnd *rand.Rand) string {
	f.t.Helper()
	place := rnd.IntN(nodes)
	switch n := rnd.IntN(100); {
	case n < 12:
		if place = leaderOf(f, store); place < 0 {
			return "no leader"
		}
		if n < 4 { // it wakes up when another node leads
			f.stop(place, 2*leaderLease)
			return "leader stopped"
		}
		f.restart(place)
		return "leader killed"
	case n < 20:
		f.stop(place, lease+time.Duration(rnd.Int64N(int64(lease))))
		return "stopped"
	case n < 26:
		if err := db.cut(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		return "cut off"
	case n < 29:
		db.Kill()
		_ = pause(f.t.Context(), time.Duration(rnd.Int64N(int64(2*leaderLease))))
		if err := db.Again(); err != nil {
			f.t.Fatal(err)
		}
		return "database killed"
	}
	f.restart(place)
	return "killed"
}

// leaderOf returns the place of the node that leads, or -1 if that is not known.
func leaderOf(f *fleet, store queue.Store) int {
	f.t.Helper()
	ctx, stop := context.WithTimeout(f.t.Context(), time.Second)
	defer stop()
	stats, err := store.Stats(ctx, time.Now())
	if err != nil || stats.Lead == nil {
		return -1
	}
	return slices.IndexFunc(f.members, func(m *member) bool { return m.name == stats.Lead.Name })
}

// TestC11_Failover kills the leader of nodes with many tasks, with the usual lease, and
// logs how long it takes until the next leader has made a claim.
func TestC11_Failover(t *testing.T) {
	for name, start := range map[string]func(*testing.T) database{"PostgreSQL": postgres, "Redis": redisServer} {
		t.Run(name, func(t *testing.T) { failOver(t, start(t)) })
	}
}

// failovers is how many leaders TestC11_Failover kills. make torture repeats the test.
const failovers = 2

func failOver(t *testing.T, db database) {
	t.Helper()
	t.Cleanup(db.Stop)
	dir := t.TempDir()
	f := startFleet(t, &fleet{dir: dir, url: db.DSN, lease: usualLease}, slices.Repeat([]string{isNode}, 3)...)
	store, err := httpstore.Open("unix:"+filepath.Join(dir, isNode+"-0"), httpstore.Config{Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	s := &submitter{ledger: newLedger(), stores: []queue.Store{store}}
	const call = 2000
	for range failoverTasks / call {
		var batch []queue.NewTask
		plans := make([]plan, call)
		for i := range plans {
			plans[i] = plan{Work: 10 * time.Millisecond}
			batch = append(batch, planned(s.ids.New(time.Now()), plans[i], queue.Spec{}))
		}
		if err := s.submit(t.Context(), batch, plans); err != nil {
			t.Fatal(err)
		}
	}
	var took []time.Duration
	for range failovers {
		place := leaderOf(f, store)
		for began := now(); place < 0; place = leaderOf(f, store) {
			if now()-began > int64(patience) {
				t.Fatal("no node leads")
			}
		}
		before := lastEpoch(t, dir)
		f.kill(place)
		killed := now()
		for lastEpoch(t, dir) == before {
			if now()-killed > int64(patience) {
				t.Fatal("no other node leads")
			}
			_ = pause(t.Context(), time.Millisecond)
		}
		took = append(took, time.Duration(now()-killed).Round(time.Millisecond))
		f.start(place)
	}
	t.Logf("from the kill of the leader to a run that the next one has claimed: %v", took)
}

// lastEpoch returns the number of the leader that has claimed the last task that has begun.
func lastEpoch(t *testing.T, dir string) queue.Token {
	t.Helper()
	const tail, epochBits = 1000, 40
	file, err := os.Open(filepath.Join(dir, logFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, min(tail, size))
	if _, err := file.ReadAt(b, size-int64(len(b))); err != nil {
		t.Fatal(err)
	}
	var last queue.Token
	for line := range strings.Lines(string(b)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == begins {
			token, _ := strconv.ParseUint(words[2], 10, 64)
			last = max(last, queue.Token(token>>epochBits))
		}
	}
	return last
}
