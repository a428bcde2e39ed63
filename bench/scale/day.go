package scale

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/dbserver"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/pgstore"

	"github.com/stintgo/stint/bench/measure"
)

// The tasks of a day on PostgreSQL.
const (
	waitingTasks = 10_000 // at a time
	succeeded    = 1_000  // that are kept
	dayBatch     = 1_000
	dayWorkers   = 64
	parts        = 10 // of the day, whose rates are compared
)

// The readings of a day.
const (
	slowest = "slowest tenth" // its rate, in percent of that of the first
	growth  = "tables"        // their largest size, in percent of that with the first waiting tasks
)

// day is half as many tasks as the other cases have pending: 5,000,000 unless the caller
// sets a number. Few of them wait at a time, so what the tables and indexes take beyond
// that is what the server has not cleaned up yet.
func (t *Tasks) day() measure.Case {
	const ours = "stint, PostgreSQL (synced)"
	n := t.pending / 2
	return measure.Case{
		Name: fmt.Sprintf("PostgreSQL: %d tasks come and go, %d at a time", n, waitingTasks),
		Ours: ours,
		Readings: []measure.Reading{
			{Name: rate, Unit: "/s"}, {Name: slowest, Unit: "%"}, {Name: growth, Unit: "%"},
		},
		Goals: []string{slowest + " ≥ 80 %", growth + " ≤ 2000 %"},
		Subjects: []measure.Subject{{Name: ours, Probe: func(st *measure.Stage) (measure.Values, error) {
			return t.spend(st, n)
		}}},
	}
}

// spend has n tasks submitted, run and forgotten.
func (t *Tasks) spend(st *measure.Stage, n int) (_ measure.Values, err error) {
	if st.Once {
		n = 2 * waitingTasks
	}
	dir, err := t.serverDir(st, "day-")
	if err != nil {
		return nil, err
	}
	server, err := dbserver.NewPostgres(dir, func(string) error { return nil })
	if err != nil {
		return nil, err
	}
	url, stop, err := server.Start(filepath.Join(dir, "day"))
	if err != nil {
		return nil, err
	}
	st.Cleanup(stop)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store, err := pgstore.Open(ctx, url, pgstore.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	d := day{queue: queue.New(store, queue.Config{}), url: url, room: make(chan struct{}, waitingTasks)}
	return d.run(ctx, n)
}

// day is a queue whose handlers make room for the next tasks.
type day struct {
	queue *queue.Queue
	url   string
	room  chan struct{}
}

const dayKind queue.Kind[string] = "day"

func (d *day) run(ctx context.Context, n int) (measure.Values, error) {
	settings := queue.Settings{Keep: queue.Retention{Count: succeeded}}
	if err := d.queue.Configure(ctx, "default", settings); err != nil {
		return nil, err
	}
	for range waitingTasks / dayBatch {
		if err := d.submit(ctx); err != nil {
			return nil, err
		}
	}
	first, err := d.size(ctx)
	if err != nil {
		return nil, err
	}
	dayKind.Handle(d.queue, func(context.Context, *queue.Job[string]) error {
		d.room <- struct{}{}
		return nil
	})
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.queue.Run(running, stint.New(dayWorkers, stint.Config{})) }()
	var rates []float64
	largest := first
	began := time.Now()
	for range parts {
		start := time.Now()
		for range max(n/parts/dayBatch, 1) {
			for range dayBatch {
				<-d.room
			}
			if err := d.submit(ctx); err != nil {
				return nil, err
			}
		}
		rates = append(rates, 1/time.Since(start).Seconds())
		size, err := d.size(ctx)
		if err != nil {
			return nil, err
		}
		largest = max(largest, size)
	}
	took := time.Since(began)
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return nil, err
	}
	return measure.Values{
		rate:    float64(max(n/parts/dayBatch, 1)*parts*dayBatch) / took.Seconds(),
		slowest: 100 * slices.Min(rates) / rates[0],
		growth:  100 * float64(largest) / float64(first),
	}, nil
}

// submit submits a batch of tasks of a hundred bytes.
func (d *day) submit(ctx context.Context) error {
	tasks := make([]queue.NewTask, dayBatch)
	for i := range tasks {
		var err error
		if tasks[i], err = dayKind.Prepare(d.queue, strings.Repeat("x", 98), queue.Options{}); err != nil {
			return err
		}
	}
	_, err := d.queue.Submit(ctx, tasks...)
	return err
}

// size returns the bytes of all tables of the store and their indexes.
func (d *day) size(ctx context.Context) (bytes int64, err error) {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, `SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
		JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'stint' AND c.relkind = 'r'`).Scan(&bytes)
	return bytes, err
}
