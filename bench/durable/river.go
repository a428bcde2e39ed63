package durable

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverQueue is River on a PostgreSQL of its own, whose commits are answered
// after their sync.
type riverQueue struct {
	turn   *turn
	pool   *pgxpool.Pool
	config river.Config
	client *river.Client[pgx.Tx] // that submits; another one works
}

// migrateRiver makes the tables.
func migrateRiver(dsn string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("tables of River: %w", err)
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// openRiverTuned has River fetch a hundred times as often as by default, which
// is as often as it allows.
func openRiverTuned(t *turn) (keeper, error) {
	return openRiver(t, river.Config{FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond})
}

func openRiverDefault(t *turn) (keeper, error) { return openRiver(t, river.Config{}) }

func openRiver(t *turn, config river.Config) (keeper, error) {
	dsn, stop, err := t.postgres.Start(t.dir)
	if err != nil {
		return nil, err
	}
	t.Cleanup(stop)
	settings, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	settings.MaxConns = callers + 8 // the workers' outcomes are settled together
	pool, err := pgxpool.NewWithConfig(context.Background(), settings)
	if err != nil {
		return nil, err
	}
	t.Cleanup(pool.Close)
	config.Logger = slog.New(slog.DiscardHandler)
	client, err := river.NewClient(riverpgxv5.New(pool), &config)
	return &riverQueue{turn: t, pool: pool, config: config, client: client}, err
}

func (r *riverQueue) submit(stamp int64) error {
	_, err := r.client.Insert(context.Background(), riverArgs{newArgs(stamp)}, nil)
	return err
}

func (r *riverQueue) submitBatch(n int) error {
	many := make([]river.InsertManyParams, n)
	for i := range many {
		many[i].Args = riverArgs{newArgs(0)}
	}
	_, err := r.client.InsertManyFast(context.Background(), many)
	return err
}

func (r *riverQueue) work(handled func(stamp int64)) error {
	config := r.config
	config.Workers = river.NewWorkers()
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
	river.AddWorker(config.Workers, &riverWorker{handled: handled})
	client, err := river.NewClient(riverpgxv5.New(r.pool), &config)
	if err != nil {
		return err
	}
	r.turn.Cleanup(func() { _ = client.Stop(context.Background()) })
	return client.Start(context.Background())
}

func (r *riverQueue) settled() error { return untilNone(r.unsettled) }

func (r *riverQueue) unsettled() (n int, err error) {
	const query = "select count(*) from river_job where finalized_at is null"
	err = r.pool.QueryRow(context.Background(), query).Scan(&n)
	return n, err
}

type riverArgs struct{ args }

// Kind is as River says.
func (riverArgs) Kind() string { return kind }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	handled func(stamp int64)
}

// Work is as River says.
func (w *riverWorker) Work(_ context.Context, job *river.Job[riverArgs]) error {
	w.handled(job.Args.Stamp)
	return nil
}
