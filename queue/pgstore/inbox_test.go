package pgstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/pgstore"
)

// counted is a database that counts the batches that are written to it.
type counted struct {
	dbrows.DB
	batches *atomic.Int64
}

func (c counted) Apply(ctx context.Context, t dbrows.Term, changes []journal.Change) error {
	c.batches.Add(1)
	return c.DB.Apply(ctx, t, changes)
}

// openCounted opens a store, and returns the number of batches that are written to it.
func openCounted(t *testing.T, dsn string, cfg pgstore.Config) (*pgstore.Store, *atomic.Int64) {
	t.Helper()
	batches := &atomic.Int64{}
	s, err := pgstore.OpenWrapped(t.Context(), dsn, cfg, func(db dbrows.DB) dbrows.DB { return counted{db, batches} })
	if err != nil {
		t.Fatal(err)
	}
	return s, batches
}

// batchesMost is how many batches the leader may need for rows of inTxMany transactions that commit
// together, among them those of its renewals and those of a look that has seen a part of them.
const inTxMany, batchesMost = 300, 30

// runningMany submits tasks and claims them.
func runningMany(tb testing.TB, s queue.Store, n int) []queue.Task {
	tb.Helper()
	var ids queue.IDs
	tasks := make([]queue.NewTask, n)
	for i := range tasks {
		tasks[i] = prepared(&ids, queue.Spec{})
	}
	if _, err := s.Submit(tb.Context(), time.Now(), tasks); err != nil {
		tb.Fatal(err)
	}
	got, err := s.Claim(tb.Context(), time.Now(), queue.Claim{
		Worker: "w", Kinds: []string{"work"}, Max: n, Lease: time.Minute,
	})
	if err != nil || len(got.Tasks) != n {
		tb.Fatalf("claimed %d tasks, %v", len(got.Tasks), err)
	}
	return got.Tasks
}

// settleMany settles tasks in one transaction of c.
func settleMany(tb testing.TB, c *pgx.Conn, cfg pgstore.Config, tasks []queue.Task) {
	tb.Helper()
	err := pgx.BeginFunc(tb.Context(), c, func(tx pgx.Tx) error {
		for i := range tasks {
			if err := pgstore.SettleTx(tb.Context(), tx, cfg, success(&tasks[i])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// TestC11_SettleTxInBatches: outcomes that are committed together are accepted together, both by
// the leader's look for them and when the handlers return.
func TestC11_SettleTxInBatches(t *testing.T) {
	for _, returns := range []bool{false, true} {
		cfg := pgstore.Config{Schema: newSchema(), Lease: time.Minute}
		dsn := sharedServer(t)
		s, batches := openCounted(t, dsn, cfg)
		tasks, c := runningMany(t, s, inTxMany), connection(t, dsn)
		settleMany(t, c, cfg, tasks)
		before := batches.Load()
		if returns {
			outcomes := make([]queue.Outcome, len(tasks))
			for i := range tasks {
				outcomes[i] = success(&tasks[i])
			}
			answers, err := s.Settle(t.Context(), time.Now(), outcomes)
			if err != nil {
				t.Fatal(err)
			}
			for i, err := range answers {
				if err != nil {
					t.Fatalf("outcome %d: %v", i, err)
				}
			}
		}
		noRows(t, c, cfg)
		for i := range tasks {
			becomes(t, s, tasks[i].ID, queue.Succeeded)
		}
		if n := batches.Load() - before; n > batchesMost {
			t.Errorf("handlers return: %t: %d outcomes took %d batches", returns, inTxMany, n)
		}
	}
}

// TestC11_SubmitTxInBatches: submissions that are committed together are accepted together, in
// the order of their IDs.
func TestC11_SubmitTxInBatches(t *testing.T) {
	cfg := pgstore.Config{Schema: newSchema(), Lease: time.Minute}
	dsn := sharedServer(t)
	s, batches := openCounted(t, dsn, cfg)
	c := connection(t, dsn)
	ids := submitMany(t, c, cfg, inTxMany)
	awaits(t, s, ids, len(ids))
	if n := batches.Load(); n > batchesMost {
		t.Errorf("%d submissions took %d batches", inTxMany, n)
	}
	got, err := s.Claim(t.Context(), time.Now(), queue.Claim{
		Worker: "w", Kinds: []string{"work"}, Max: inTxMany, Lease: time.Minute,
	})
	if err != nil || len(got.Tasks) != inTxMany {
		t.Fatalf("claimed %d tasks, %v", len(got.Tasks), err)
	}
	for i := range got.Tasks {
		if got.Tasks[i].ID != ids[i] {
			t.Fatalf("task %d in the order of starts is not task %d in the order of IDs", i, i)
		}
	}
}

// submitMany submits tasks in one transaction, each in a call of its own.
func submitMany(tb testing.TB, c *pgx.Conn, cfg pgstore.Config, n int) (all []queue.ID) {
	tb.Helper()
	var ids queue.IDs
	err := pgx.BeginFunc(tb.Context(), c, func(tx pgx.Tx) error {
		for range n {
			task := prepared(&ids, queue.Spec{})
			all = append(all, task.ID)
			if err := pgstore.SubmitTx(tb.Context(), tx, cfg, task); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// BenchmarkInbox measures how fast the leader accepts rows of transactions that have committed, on a
// server that syncs: outcomes whose handlers return, in calls of Settle as large as those of a
// worker, beside those of attempts without transactions; and submissions of one task each.
func BenchmarkInbox(b *testing.B) {
	const many, call = 2000, 500
	server := newServer(b)
	settles := func(b *testing.B, inTx bool) {
		b.Helper()
		cfg := pgstore.Config{Schema: newSchema()}
		s, c := openBench(b, server.DSN, cfg)
		for b.Loop() {
			b.StopTimer()
			tasks := runningMany(b, s, many)
			outcomes := make([]queue.Outcome, many)
			for i := range tasks {
				outcomes[i] = success(&tasks[i])
				outcomes[i].InTx = inTx
			}
			for ; len(outcomes) > 0; outcomes, tasks = outcomes[call:], tasks[call:] {
				if inTx {
					settleMany(b, c, cfg, tasks[:call])
				}
				b.StartTimer()
				if _, err := s.Settle(b.Context(), time.Now(), outcomes[:call]); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
			}
			b.StartTimer()
		}
		b.ReportMetric(float64(many*b.N)/b.Elapsed().Seconds(), "tasks/s")
	}
	b.Run("settle", func(b *testing.B) { settles(b, false) })
	b.Run("settle in transactions", func(b *testing.B) { settles(b, true) })
	b.Run("submit in transactions", func(b *testing.B) {
		cfg := pgstore.Config{Schema: newSchema()}
		s, c := openBench(b, server.DSN, cfg)
		for b.Loop() {
			b.StopTimer()
			ids := submitMany(b, c, cfg, many)
			b.StartTimer()
			for last := ids[many-1:]; ; {
				found, err := s.Find(b.Context(), queue.Filter{IDs: last}, queue.Page{})
				if err != nil {
					b.Fatal(err)
				}
				if len(found) == 1 {
					break
				}
				<-time.After(time.Millisecond)
			}
		}
		b.ReportMetric(float64(many*b.N)/b.Elapsed().Seconds(), "tasks/s")
	})
}

func openBench(b *testing.B, dsn string, cfg pgstore.Config) (*pgstore.Store, *pgx.Conn) {
	b.Helper()
	s, err := pgstore.Open(b.Context(), dsn, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	c, err := pgx.Connect(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(context.Background()) })
	return s, c
}
