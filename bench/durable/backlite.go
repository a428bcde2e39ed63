package durable

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver that backlite is made for
	"github.com/mikestefanello/backlite"
)

// backliteQueue is backlite on a SQLite file whose every commit is synced.
type backliteQueue struct {
	turn   *turn
	db     *sql.DB
	client *backlite.Client
}

func openBacklite(t *turn) (keeper, error) {
	file := "file:" + filepath.Join(t.dir, "tasks.db") + "?_journal=WAL&_timeout=5000&_sync=FULL&_txlock=immediate"
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1) // several that write are refused as busy, whatever the timeout
	client, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: workers, ReleaseAfter: time.Minute})
	if err != nil {
		return nil, err
	}
	return &backliteQueue{t, db, client}, client.Install()
}

func (b *backliteQueue) submit(stamp int64) error {
	_, err := b.client.Add(backliteTask{newArgs(stamp)}).Ctx(context.Background()).Save()
	return err
}

func (b *backliteQueue) submitBatch(n int) error {
	many := make([]backlite.Task, n)
	for i := range many {
		many[i] = backliteTask{newArgs(0)}
	}
	_, err := b.client.Add(many...).Ctx(context.Background()).Save()
	return err
}

func (b *backliteQueue) work(handled func(stamp int64)) error { //nolint:unparam // the interface has the error
	b.client.Register(backlite.NewQueue(func(_ context.Context, task backliteTask) error {
		handled(task.Stamp)
		return nil
	}))
	b.client.Start(context.Background())
	b.turn.Cleanup(func() { b.client.Stop(context.Background()) })
	return nil
}

func (b *backliteQueue) settled() error { return untilNone(b.unsettled) }

func (b *backliteQueue) unsettled() (n int, err error) {
	err = b.db.QueryRow("select count(*) from backlite_tasks").Scan(&n) //nolint:noctx // it ends by itself
	return n, err
}

type backliteTask struct{ args }

// Config is as backlite says.
func (backliteTask) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: kind, MaxAttempts: 3, Timeout: time.Minute, Backoff: time.Second}
}
