package scale

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/stintgo/stint/internal/dbserver"

	"github.com/stintgo/stint/bench/measure"
)

// hostedPart is how many times fewer tasks are pending on a database server than in a
// directory. A tenth of them has the key that is at its limit.
const hostedPart = 10

// The readings of a database server.
const (
	filling = "submitting"              // batches of 1000
	kept    = "with the pending tasks"  // the rate of lives, in percent of that before
	drained = "working off"             // the pending tasks, tasks per second
	perTask = "memory of Redis a task"  // bytes
	before  = "with an empty queue"     // the rate of lives
	leader  = "peak memory of a leader" // bytes
)

// postgres measures a leader on PostgreSQL with a tenth of the pending tasks.
func (t *Tasks) postgres() measure.Case {
	return t.hosted("PostgreSQL", nil, func(st *measure.Stage) (measure.Values, error) {
		dir, err := t.serverDir(st, "postgres-")
		if err != nil {
			return nil, err
		}
		server, err := dbserver.NewPostgres(dir, func(string) error { return nil })
		if err != nil {
			return nil, err
		}
		url, stop, err := server.Start(filepath.Join(dir, "server"))
		if err != nil {
			return nil, err
		}
		st.Cleanup(stop)
		return t.leads(st, url, nil)
	})
}

// redis measures a leader on Redis, which syncs its log before it answers.
func (t *Tasks) redis() measure.Case {
	goals := []string{perTask + " ≤ 450 B"}
	return t.hosted("Redis", goals, func(st *measure.Stage) (measure.Values, error) {
		if err := dbserver.NeedRedis(); err != nil {
			return nil, err
		}
		dir, err := t.serverDir(st, "redis-")
		if err != nil {
			return nil, err
		}
		address, stop, err := dbserver.Redis(dir, dbserver.Always)
		if err != nil {
			return nil, err
		}
		st.Cleanup(stop)
		return t.leads(st, "redis://"+address, func() (float64, error) { return memoryOf(address) })
	})
}

// hosted is the case of a server. goals are those beyond the common ones, about perTask.
func (t *Tasks) hosted(
	server string, goals []string, probe func(*measure.Stage) (measure.Values, error),
) measure.Case {
	ours := "stint, " + server + " (synced)"
	c := measure.Case{
		Name: fmt.Sprintf("%s: %d pending, a tenth of a key at its limit; 64 callers, 64 workers",
			server, t.pending/hostedPart),
		Ours: ours,
		Readings: []measure.Reading{
			{Name: before, Unit: "/s"},
			{Name: kept, Unit: "%"},
			{Name: filling, Unit: "/s"},
			{Name: drained, Unit: "/s"},
			{Name: opening, Unit: "ns"},
			{Name: leader, Unit: "B"},
		},
		Goals:    append([]string{kept + " ≥ 80 %", drained + " ≥ 40000 /s", opening + " ≤ 5 s"}, goals...),
		Subjects: []measure.Subject{{Name: ours, Probe: probe}},
	}
	if len(goals) > 0 {
		c.Readings = append(c.Readings, measure.Reading{Name: perTask, Unit: "B"})
	}
	return c
}

// serverDir returns a new directory for a server, which may run under another account.
func (t *Tasks) serverDir(st *measure.Stage, prefix string) (string, error) {
	dir, err := os.MkdirTemp(t.dir, prefix)
	if err != nil {
		return "", err
	}
	st.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, path := range []string{t.dir, dir} { // PostgreSQL does not run as root: see durable.Prepare
		if err := os.Chmod(path, 0o711); err != nil { //nolint:gosec // nothing in it is secret
			return "", err
		}
	}
	return dir, nil
}

// leads runs the phases of a leader on an empty store. used returns the memory of the
// server; it may be nil.
func (t *Tasks) leads(st *measure.Stage, url string, used func() (float64, error)) (measure.Values, error) {
	size, pending := strconv.Itoa(st.Size(worked)), max(t.pending/hostedPart, 1)
	empty, err := t.run(st, "-store", url, "-work", size)
	if err != nil {
		return nil, err
	}
	unfilled := 0.0
	if used != nil {
		if unfilled, err = used(); err != nil {
			return nil, err
		}
	}
	filled, err := t.run(st, "-store", url, "-busy", "-fill", strconv.Itoa(pending))
	if err != nil {
		return nil, err
	}
	found := measure.Values{before: empty[rate], filling: filled[rate]}
	if used != nil {
		full, err := used()
		if err != nil {
			return nil, err
		}
		found[perTask] = (full - unfilled) / float64(pending)
	}
	full, err := t.run(st, "-store", url, "-work", size)
	if err != nil {
		return nil, err
	}
	// Some of the handlers that had to wait for a task have ended one more, and one task of
	// the key is delayed.
	rest, err := t.run(st, "-store", url, "-drain", strconv.Itoa(max(pending-1000, 1)))
	if err != nil {
		return nil, err
	}
	found[kept], found[opening], found[leader] = 100*full[rate]/empty[rate], full[opening], full[peak]
	found[drained] = rest[rate]
	return found, nil
}

// memoryOf returns the memory that a Redis server has allocated, in bytes.
func memoryOf(address string) (float64, error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	defer func() { _ = client.Close() }()
	info, err := client.InfoMap(context.Background(), "memory").Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(info["Memory"]["used_memory"], 64)
}
