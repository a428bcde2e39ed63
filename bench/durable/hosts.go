package durable

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/stintgo/stint/internal/dbserver"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"

	"github.com/stintgo/stint/bench/measure"
)

// The names of stint's stores on database servers.
const (
	oursPostgres = "stint, PostgreSQL (synced)"
	twoFollowers = "stint, PostgreSQL, two followers (synced)"
	limitsOn     = "stint, PostgreSQL, limits on (synced)"
	limitsOff    = "stint, PostgreSQL, limits off (synced)"
	oursAlways   = "stint, Redis always (synced)"
	oursEverySec = "stint, Redis everysec (not synced)"
	// followerSlots are those of each of two followers.
	followerSlots = workers / 2
)

// hosted are the rows about tasks on a database server, beside the queues that are made
// for it.
func (s *Systems) hosted() []measure.Case {
	const submits, lives, starts = "submit, 64 callers that wait for each answer",
		"submit, claim, run, settle: 64 callers, 64 workers", "from submit to start, one task every 5 ms"
	rates := []measure.Reading{{Name: rate, Unit: "/s"}}
	times := []measure.Reading{{Name: "p50", Unit: "ns"}, {Name: "p99", Unit: "ns"}}
	all := func(k keeper, n int) error { return submitAll(k, n, callers) }
	return []measure.Case{
		{
			Name: "PostgreSQL: " + submits, Ours: oursPostgres, Readings: rates,
			Goals: []string{"rate ≥ 45000 /s"},
			Subjects: []measure.Subject{
				{Name: oursPostgres, Probe: s.submitting(40_000, openPostgres, all)},
				{Name: riverTuned, Probe: s.submitting(3_000, openRiverTuned, all)},
			},
		},
		{
			Name: "PostgreSQL: submit, one caller, batches of 1000", Ours: oursPostgres, Readings: rates,
			Goals: []string{"rate ≥ 100000 /s"},
			Subjects: []measure.Subject{
				{Name: oursPostgres, Probe: s.submitting(100_000, openPostgres, submitBatches)},
				{Name: riverTuned, Probe: s.submitting(40_000, openRiverTuned, submitBatches)},
			},
		},
		{
			Name: "PostgreSQL: " + lives, Ours: oursPostgres, Readings: rates,
			Goals: []string{"rate ≥ 25000 /s", "rate ≥ 8× " + riverTuned},
			Subjects: []measure.Subject{
				{Name: oursPostgres, Probe: s.working(30_000, openPostgres, all)},
				{Name: twoFollowers, Probe: s.working(20_000, openFollowers, all)},
				{Name: riverTuned, Probe: s.working(3_000, openRiverTuned, all)},
			},
		},
		{
			Name: "PostgreSQL: submit, claim, run, settle: one caller, batches of 1000, 64 workers", Ours: oursPostgres,
			Readings: rates, Goals: []string{"rate ≥ 40000 /s"},
			Subjects: []measure.Subject{
				{Name: oursPostgres, Probe: s.working(40_000, openPostgres, submitBatches)},
				{Name: riverTuned, Probe: s.working(10_000, openRiverTuned, submitBatches)},
			},
		},
		{
			Name: "PostgreSQL: " + starts, Ours: oursPostgres, Readings: times, Goals: []string{"p50 ≤ 1.2 ms"},
			Subjects: []measure.Subject{
				{Name: oursPostgres, Probe: s.starting(openPostgres)},
				{Name: riverTuned, Probe: s.starting(openRiverTuned)},
			},
		},
		{
			Name: "PostgreSQL: limits that do not bind, 100 keys, batches of 1000, 64 workers", Ours: limitsOn,
			Readings: rates, Goals: []string{"rate ≥ 0.9× " + limitsOff},
			Subjects: []measure.Subject{
				{Name: limitsOn, Probe: s.working(40_000, keyed(openPostgres, wideLimits()), submitBatches)},
				{Name: limitsOff, Probe: s.working(40_000, keyed(openPostgres, queue.Settings{}), submitBatches)},
			},
		},
		s.groups("PostgreSQL: two queues, "+lives, all),
		s.redis(submits, rates, "rate ≥ 45000 /s", "", func(n int, open opener) measure.Subject {
			return measure.Subject{Probe: s.submitting(n, open, all)}
		}),
		s.redis(lives, rates, "rate ≥ 28000 /s", "rate ≥ 10× "+asynqAlways, func(n int, open opener) measure.Subject {
			return measure.Subject{Probe: s.working(n, open, all)}
		}),
		s.redis(starts, times, "p50 ≤ 1 ms", "", func(_ int, open opener) measure.Subject {
			return measure.Subject{Probe: s.starting(open)}
		}),
	}
}

// redis is a row about tasks in Redis, with goals for a log that is synced always.
func (s *Systems) redis(
	name string, readings []measure.Reading, goal, more string, of func(n int, open opener) measure.Subject,
) measure.Case {
	c := measure.Case{Name: "Redis: " + name, Ours: oursAlways, Readings: readings, Goals: []string{goal}}
	if more != "" {
		c.Goals = append(c.Goals, more)
	}
	for _, row := range []struct {
		name string
		n    int
		open opener
	}{
		{oursAlways, 30_000, openRedis(dbserver.Always)},
		{oursEverySec, 30_000, openRedis(dbserver.EverySec)},
		{asynqAlways, 3_000, openAsynqAlways},
		{asynqEverySec, 10_000, openAsynqEverySec},
	} {
		subject := of(row.n, row.open)
		subject.Name = row.name
		c.Subjects = append(c.Subjects, subject)
	}
	return c
}

// startPostgres starts a server of this turn.
func startPostgres(t *turn) (url string, err error) {
	url, stop, err := t.postgres.Start(t.dir)
	if err == nil {
		t.Cleanup(stop)
	}
	return url, err
}

func openPostgres(t *turn) (keeper, error) {
	url, err := startPostgres(t)
	if err != nil {
		return nil, err
	}
	store, err := pgstore.Open(context.Background(), url, pgstore.Config{})
	if err != nil {
		return nil, err
	}
	return newStintQueue(t, store), nil
}

func openRedis(synced dbserver.Sync) opener {
	return func(t *turn) (keeper, error) {
		dir := filepath.Join(t.dir, "redis")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		address, stop, err := dbserver.Redis(dir, synced)
		if err != nil {
			return nil, err
		}
		t.Cleanup(stop)
		store, err := redisstore.Open(context.Background(), "redis://"+address, redisstore.Config{})
		if err != nil {
			return nil, err
		}
		return newStintQueue(t, store), nil
	}
}

// followers are two nodes that follow a third one: the callers submit to the first, and
// both work.
type followers struct {
	*stintQueue
	second *stintQueue
}

func openFollowers(t *turn) (keeper, error) {
	url, err := startPostgres(t)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
		return pgstore.Open(ctx, url, pgstore.Config{Name: self.Name, Contact: self.Contact})
	}
	var nodes [3]*cluster.Node // the first one leads
	for i := range nodes {
		if nodes[i], err = cluster.Open(context.Background(), open, cluster.Config{}); err != nil {
			return nil, err
		}
		if i == 0 {
			t.Cleanup(func() { _ = nodes[0].Close() })
		}
	}
	if _, own := nodes[0].Leader(); !own {
		return nil, errors.New("the first node does not lead")
	}
	return &followers{newStintQueue(t, nodes[1]), newStintQueue(t, nodes[2])}, nil
}

func (f *followers) work(handled func(stamp int64)) error {
	return errors.Join(f.workIn(followerSlots, handled), f.second.workIn(followerSlots, handled))
}

func (f *followers) settled() error {
	var both sync.WaitGroup
	var err error
	both.Go(func() { err = f.second.settled() })
	first := f.stintQueue.settled()
	both.Wait()
	return errors.Join(first, err)
}

var _ system = (*followers)(nil)
