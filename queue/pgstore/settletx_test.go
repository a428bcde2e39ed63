package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/pgstore"
)

// settleLease is the length of the leases of these tests, by a clock that the tests set.
const settleLease = 30 * time.Second

// claims claims one task.
func claims(t *testing.T, s queue.Store, now time.Time) queue.Task {
	t.Helper()
	got, err := s.Claim(t.Context(), now, queue.Claim{Worker: "w", Kinds: []string{"work"}, Max: 1, Lease: settleLease})
	if err != nil || len(got.Tasks) != 1 {
		t.Fatalf("claimed %d tasks, %v", len(got.Tasks), err)
	}
	return got.Tasks[0]
}

// running submits a task and claims it.
func running(t *testing.T, s queue.Store, now time.Time) queue.Task {
	t.Helper()
	var ids queue.IDs
	if _, err := s.Submit(t.Context(), now, []queue.NewTask{prepared(&ids, queue.Spec{})}); err != nil {
		t.Fatal(err)
	}
	return claims(t, s, now)
}

func success(task *queue.Task) queue.Outcome {
	return queue.Outcome{
		ID: task.ID, Token: task.Lease.Token, Kind: queue.OutcomeSuccess, Result: []byte(`"tx"`), InTx: true,
	}
}

func begins(t *testing.T, c *pgx.Conn, level pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx, err := c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func settles(t *testing.T, tx pgx.Tx, cfg pgstore.Config, o queue.Outcome) {
	t.Helper()
	if err := pgstore.SettleTx(t.Context(), tx, cfg, o); err != nil {
		t.Fatal(err)
	}
}

func commits(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func rollsBack(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func maintains(t *testing.T, s queue.Store, now time.Time) {
	t.Helper()
	if _, err := s.Maintain(t.Context(), now, 0); err != nil {
		t.Fatal(err)
	}
}

func finds(t *testing.T, s queue.Store, id queue.ID) queue.Task {
	t.Helper()
	found, err := s.Find(t.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{})
	if err != nil || len(found) != 1 {
		t.Fatalf("found %d tasks, %v", len(found), err)
	}
	return found[0]
}

// becomes waits until a task has a state.
func becomes(t *testing.T, s queue.Store, id queue.ID, want queue.State) queue.Task {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for {
		task := finds(t, s, id)
		if task.State == want {
			return task
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the task is %s, not %s: %+v", task.State, want, task.Steps)
		}
	}
}

// noRows checks that neither outcomes nor fences are left.
func noRows(t *testing.T, c *pgx.Conn, cfg pgstore.Config) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	table := pgx.Identifier{cfg.Schema, "rows"}.Sanitize()
	for {
		var left int
		err := c.QueryRow(ctx, `select count(*) from `+table+` where key >= 'o' and key < 'p'`).Scan(&left)
		if err == nil && left == 0 {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%d rows of outcomes are left, %v", left, err)
		}
	}
}

var levels = []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}

// settlesLate returns the error of SettleTx for an attempt that was settled. A transaction whose
// snapshot is older than the removal of the outcome cannot be serialized, and is repeated, as
// PostgreSQL asks for.
func settlesLate(t *testing.T, c *pgx.Conn, level pgx.TxIsoLevel, cfg pgstore.Config, o queue.Outcome) error {
	t.Helper()
	const serializationFailure, repetitions = "40001", 100
	for n := 1; ; n++ {
		tx := begins(t, c, level)
		err := pgstore.SettleTx(t.Context(), tx, cfg, o)
		rollsBack(t, tx)
		refused, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || refused.Code != serializationFailure || level == pgx.ReadCommitted || n == repetitions {
			return err
		}
	}
}

// TestC11_SettleTx: a task has the outcome of a transaction that commits, with all of its
// fields, and is as it was if the transaction is rolled back.
func TestC11_SettleTx(t *testing.T) {
	dsn, cfg := sharedServer(t), pgstore.Config{Schema: newSchema()}
	s, c := open(t, dsn, cfg), connection(t, dsn)
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.Now()
	for _, level := range levels {
		task := running(t, s, now)
		tx := begins(t, c, level)
		settles(t, tx, cfg, success(&task))
		if err := pgstore.SettleTx(t.Context(), tx, cfg, success(&task)); !errors.Is(err, queue.ErrStale) {
			t.Errorf("%s: the second outcome of an attempt: %v", level, err)
		}
		rollsBack(t, tx)
		if got := finds(t, s, task.ID); got.State != queue.Running {
			t.Fatalf("%s: after a rollback the task is %s", level, got.State)
		}
		tx = begins(t, c, level)
		settles(t, tx, cfg, success(&task))
		commits(t, tx)
		if got := becomes(t, s, task.ID, queue.Succeeded); string(got.Result) != `"tx"` {
			t.Errorf("%s: the result is %s", level, got.Result)
		}
		late := settlesLate(t, c, level, cfg, success(&task))
		if !errors.Is(late, queue.ErrStale) {
			t.Errorf("%s: the outcome of an attempt that was settled: %v", level, late)
		}
	}

	task := running(t, s, now)
	o := success(&task)
	o.Kind, o.Result, o.Error, o.Checkpoint = queue.OutcomeFailure, nil, "refused", []byte("half")
	o.RunAt = time.Now().Add(time.Hour)
	std, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		err = pgstore.SettleSQL(t.Context(), std, cfg, o)
	}
	if err == nil {
		err = std.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	got := becomes(t, s, task.ID, queue.Scheduled)
	if early := o.RunAt.Sub(got.RunAt); got.Failures != 1 || got.Error != "refused" || string(got.Checkpoint) != "half" ||
		early > time.Millisecond || early < -time.Minute {
		t.Errorf("the task is %+v, its time was %s", got, o.RunAt)
	}
	for name, c := range map[string]struct {
		change func(*queue.Outcome)
		want   error
	}{
		"no token":         {func(o *queue.Outcome) { o.Token = 0 }, queue.ErrInvalid},
		"not of a handler": {func(o *queue.Outcome) { o.InTx = false }, queue.ErrInvalid},
		"no kind":          {func(o *queue.Outcome) { o.Kind = 0 }, queue.ErrInvalid},
		"too large":        {func(o *queue.Outcome) { o.Result = make([]byte, 2<<20) }, queue.ErrTooLarge},
		"no task":          {func(o *queue.Outcome) { o.ID = queue.ID{1} }, queue.ErrStale},
	} {
		o := success(&task)
		c.change(&o)
		tx := begins(t, connection(t, dsn), pgx.ReadCommitted)
		if err := pgstore.SettleTx(t.Context(), tx, cfg, o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		commits(t, tx) // an error leaves nothing behind
	}
	noRows(t, c, cfg)
}

// TestC11_SettleTxKeepsTheLease: while a transaction settles an attempt, its lease does not end,
// whatever the time and whichever process leads. After a rollback it does.
func TestC11_SettleTxKeepsTheLease(t *testing.T) {
	dsn := sharedServer(t)
	for _, level := range levels {
		for _, commit := range []bool{true, false} {
			for _, change := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/commit=%t/leader changes=%t", level, commit, change), func(t *testing.T) {
					cfg := pgstore.Config{Schema: newSchema(), Lease: time.Minute}
					s, c, now := open(t, dsn, cfg), connection(t, dsn), time.Now()
					task, other := running(t, s, now), running(t, s, now)
					tx := begins(t, c, level)
					settles(t, tx, cfg, success(&task))
					for range 3 {
						if change {
							execute(t, dsn, cfg.Schema, endLease)
							s = open(t, dsn, cfg)
							maintains(t, s, now)
						}
						now = now.Add(2 * settleLease)
						maintains(t, s, now)
						if got := finds(t, s, task.ID); got.State != queue.Running || got.Lease.Token != task.Lease.Token {
							t.Fatalf("while its transaction is open, the task is %s: %+v", got.State, got.Steps)
						}
					}
					if got := finds(t, s, other.ID); got.State != queue.Waiting || got.Crashes != 1 {
						t.Fatalf("another task, whose lease was lost, is %s after %d crashes", got.State, got.Crashes)
					}
					if commit {
						commits(t, tx)
						maintains(t, s, now.Add(2*settleLease)) // the outcome is known before a lease ends
						if got := finds(t, s, task.ID); got.State != queue.Succeeded || got.Crashes != 0 {
							t.Fatalf("after the commit the task is %s: %+v", got.State, got.Steps)
						}
					} else {
						rollsBack(t, tx)
						maintains(t, s, now.Add(2*settleLease))
						if got := finds(t, s, task.ID); got.State != queue.Waiting || got.Crashes != 1 {
							t.Fatalf("after the rollback the task is %s: %+v", got.State, got.Steps)
						}
					}
					noRows(t, c, cfg)
				})
			}
		}
	}
}

// TestC11_SettleTxOfALostLease: a transaction cannot settle an attempt whose lease was lost
// before, also if its snapshot is older than the loss, and whether or not another worker has
// the task by then.
func TestC11_SettleTxOfALostLease(t *testing.T) {
	dsn := sharedServer(t)
	for _, level := range levels {
		for _, claimed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/claimed again=%t", level, claimed), func(t *testing.T) {
				cfg := pgstore.Config{Schema: newSchema()}
				s, now := open(t, dsn, cfg), time.Now()
				task := running(t, s, now)
				table := pgx.Identifier{cfg.Schema, "rows"}.Sanitize()
				before := begins(t, connection(t, dsn), level)
				var rows int
				if err := before.QueryRow(t.Context(), `select count(*) from `+table).Scan(&rows); err != nil {
					t.Fatal(err)
				}
				now = now.Add(2 * settleLease)
				maintains(t, s, now)
				noRows(t, connection(t, dsn), cfg)
				if claimed {
					if again := claims(t, s, now); again.ID != task.ID {
						t.Fatal("another task was claimed")
					}
				}
				after := begins(t, connection(t, dsn), level)
				for name, tx := range map[string]pgx.Tx{"before": before, "after": after} {
					if err := pgstore.SettleTx(t.Context(), tx, cfg, success(&task)); err == nil {
						t.Errorf("a transaction that began %s the loss of the lease settles the attempt", name)
					} else if late := name == "after"; late && !errors.Is(err, queue.ErrStale) {
						t.Errorf("a transaction that began after the loss of the lease: %v", err)
					}
					_ = tx.Rollback(t.Context())
				}
				want := queue.Waiting
				if claimed {
					want = queue.Running
				}
				if got := finds(t, s, task.ID); got.State != want {
					t.Errorf("the task is %s, not %s", got.State, want)
				}
			})
		}
	}
}

// TestC11_SettleTxOfAFencedLease: from the fence of a lease on, no transaction settles the
// attempt, although the end of the lease has not been written yet.
func TestC11_SettleTxOfAFencedLease(t *testing.T) {
	dsn, cfg := sharedServer(t), pgstore.Config{Schema: newSchema(), Lease: time.Minute}
	s, c, now := open(t, dsn, cfg), connection(t, dsn), time.Now()
	task := running(t, s, now)
	if err := pgstore.Fence(t.Context(), s, task.ID, task.Lease.Token); err != nil {
		t.Fatal(err)
	}
	if pgstore.LookAccepts(t.Context(), s) {
		t.Error("the fence counts as an outcome that was accepted")
	}
	for _, leader := range []string{"the same", "the next"} {
		if leader == "the next" { // as if the process was killed before it has ended the lease
			execute(t, dsn, cfg.Schema, endLease)
			s = open(t, dsn, cfg)
			maintains(t, s, now)
		}
		tx := begins(t, c, pgx.ReadCommitted)
		if err := pgstore.SettleTx(t.Context(), tx, cfg, success(&task)); !errors.Is(err, queue.ErrStale) {
			t.Fatalf("%s leader: an attempt with a fence is settled: %v", leader, err)
		}
		rollsBack(t, tx)
	}
	maintains(t, s, now.Add(2*settleLease))
	if got := finds(t, s, task.ID); got.State != queue.Waiting || got.Crashes != 1 {
		t.Errorf("the task is %s: %+v", got.State, got.Steps)
	}
	noRows(t, c, cfg)
}

// TestC11_SettleTxAndTheReturn: what a handler returns counts if its transaction has not
// committed, and does not count if it has.
func TestC11_SettleTxAndTheReturn(t *testing.T) {
	dsn, cfg := sharedServer(t), pgstore.Config{Schema: newSchema()}
	s, c, now := open(t, dsn, cfg), connection(t, dsn), time.Now()
	for _, commit := range []bool{true, false} {
		task := running(t, s, now)
		tx := begins(t, c, pgx.ReadCommitted)
		settles(t, tx, cfg, success(&task))
		if commit {
			commits(t, tx)
		} else {
			rollsBack(t, tx)
		}
		failed := queue.Outcome{
			ID: task.ID, Token: task.Lease.Token, Kind: queue.OutcomeFailure, Permanent: true, Error: "commit: unknown",
			InTx: true,
		}
		for range 2 { // a call whose answer was lost is repeated
			answers, err := s.Settle(t.Context(), now, []queue.Outcome{failed})
			if err != nil || answers[0] != nil {
				t.Fatalf("commit %t: settle: %v, %v", commit, answers, err)
			}
		}
		want := queue.Dead
		if commit {
			want = queue.Succeeded
		}
		if got := finds(t, s, task.ID); got.State != want {
			t.Errorf("commit %t: the task is %s, not %s", commit, got.State, want)
		}
	}
	task := running(t, s, now)
	tx := begins(t, c, pgx.ReadCommitted)
	settles(t, tx, cfg, success(&task))
	other := running(t, s, now)
	left := []queue.Outcome{success(&task), {ID: other.ID, Token: other.Lease.Token, Kind: queue.OutcomeSuccess}}
	if _, err := s.Settle(t.Context(), now, left); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("the handler has returned, its transaction is open: %v", err)
	}
	if got := finds(t, s, other.ID); got.State != queue.Succeeded {
		t.Errorf("the task beside it is %s", got.State)
	}
	commits(t, tx)
	becomes(t, s, task.ID, queue.Succeeded)
	noRows(t, c, cfg)
}

// Close does not wait for the transactions of handlers that have returned, for 2 s each.
func TestC11_CloseBesideOpenTransactions(t *testing.T) {
	dsn, cfg := sharedServer(t), pgstore.Config{Schema: newSchema()}
	s, c, now := open(t, dsn, cfg), connection(t, dsn), time.Now()
	tx := begins(t, c, pgx.ReadCommitted)
	var left []queue.Outcome
	for range 4 {
		task := running(t, s, now)
		settles(t, tx, cfg, success(&task))
		left = append(left, success(&task))
	}
	settled := make(chan error, 1)
	go func() {
		_, err := s.Settle(context.WithoutCancel(t.Context()), now, left)
		settled <- err
	}()
	const waiting = `select exists (select from pg_locks where not granted)`
	for waits := false; !waits; {
		if err := tx.QueryRow(t.Context(), waiting).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if len(settled) > 0 {
			t.Fatalf("the call has not waited for the transaction: %v", <-settled)
		}
	}
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-settled; !errors.Is(err, queue.ErrClosed) {
		t.Errorf("the call that waited for a transaction ends with %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Close took %s: it waited for the transaction", took)
	}
	rollsBack(t, tx)
}

// TestModel_SettleTx: handlers settle tasks in transactions that also write a row of their own;
// connections break, leases expire, leaders are killed, in a random order. Each task
// has succeeded once, and its row is that of the attempt that has succeeded.
func TestModel_SettleTx(t *testing.T) {
	dsn, cfg, rnd := sharedServer(t), pgstore.Config{Schema: newSchema(), Lease: time.Minute}, seeded.Rand(t)
	s, now := open(t, dsn, cfg), time.Now()
	effects := pgx.Identifier{cfg.Schema, "effects"}.Sanitize()
	execute(t, dsn, cfg.Schema, `create table %s.effects (id bytea not null, token bigint not null)`)
	const tasks = 12
	var ids queue.IDs
	var all []queue.ID
	for range tasks {
		task := prepared(&ids, queue.Spec{Options: queue.Options{MaxCrashes: 1000, MaxAttempts: 1000}})
		all = append(all, task.ID)
		if _, err := s.Submit(t.Context(), now, []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
	}
	type handler struct {
		task    queue.Task
		tx      pgx.Tx
		settled bool
	}
	var live []*handler
	drop := func(i int) { live = append(live[:i], live[i+1:]...) }
	step := func(calm bool) {
		if len(live) < 4 && (calm || rnd.IntN(3) == 0) {
			got, err := s.Claim(t.Context(), now, queue.Claim{
				Worker: "w", Kinds: []string{"work"}, Max: 1, Lease: settleLease,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range got.Tasks {
				live = append(live, &handler{task: task})
			}
		}
		if !calm {
			switch rnd.IntN(12) {
			case 0:
				execute(t, dsn, cfg.Schema, endLease)
				s = open(t, dsn, cfg)
			case 1, 2:
				now = now.Add(settleLease / 2)
				maintains(t, s, now)
			case 3:
				now = now.Add(2 * settleLease)
				maintains(t, s, now)
			}
		}
		if len(live) == 0 {
			return
		}
		i := rnd.IntN(len(live))
		h := live[i]
		switch {
		case h.tx == nil:
			h.tx = begins(t, connection(t, dsn), levels[rnd.IntN(len(levels))])
			_, err := h.tx.Exec(t.Context(), `insert into `+effects+` values ($1, $2)`, h.task.ID[:], int64(h.task.Lease.Token))
			if err != nil {
				t.Fatal(err)
			}
		case !h.settled:
			if err := pgstore.SettleTx(t.Context(), h.tx, cfg, success(&h.task)); err != nil {
				_ = h.tx.Rollback(t.Context())
				drop(i) // the handler has lost its lease, and its process ends
				return
			}
			h.settled = true
		case calm || rnd.IntN(3) > 0:
			commits(t, h.tx)
			if rnd.IntN(2) == 0 { // or the process is killed now
				o := success(&h.task)
				if rnd.IntN(2) == 0 {
					o.Kind, o.Error = queue.OutcomeFailure, "the answer of the commit was lost"
				}
				if _, err := s.Settle(t.Context(), now, []queue.Outcome{o}); err != nil {
					t.Fatal(err)
				}
			}
			drop(i)
		default:
			if err := h.tx.Conn().PgConn().Conn().Close(); err != nil { // as if the process was killed
				t.Fatal(err)
			}
			drop(i)
		}
	}
	for range 300 {
		step(false)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	for done := 0; done < tasks; {
		step(true)
		now = now.Add(settleLease / 4)
		maintains(t, s, now)
		found, err := s.Find(ctx, queue.Filter{IDs: all, States: []queue.State{queue.Succeeded}}, queue.Page{Limit: tasks})
		if err != nil {
			t.Fatalf("%d of %d tasks have succeeded: %v", done, tasks, err)
		}
		done = len(found)
	}
	c := connection(t, dsn)
	for _, id := range all {
		var n int
		var token int64
		err := c.QueryRow(ctx, `select count(*), coalesce(max(token), 0) from `+effects+` where id = $1`, id[:]).
			Scan(&n, &token)
		if err != nil {
			t.Fatal(err)
		}
		task := finds(t, s, id)
		last := task.Steps[len(task.Steps)-1]
		if n != 1 || last.On != queue.OnSuccess || int64(last.Token) != token {
			t.Errorf("task %s has %d rows of committed attempts, the last of token %d: %+v", id, n, token, task.Steps)
		}
	}
	noRows(t, c, cfg)
}

// TestC11_OpenTransactionsKeepTheLead: results that wait for transactions leave the leader a connection
// for its lease, however many wait.
func TestC11_OpenTransactionsKeepTheLead(t *testing.T) {
	dsn, cfg := sharedServer(t), pgstore.Config{Schema: newSchema()}
	s, now := open(t, dsn+"&pool_max_conns=2", cfg), time.Now()
	var settling sync.WaitGroup
	for range 4 {
		task := running(t, s, now)
		tx := begins(t, connection(t, dsn), pgx.ReadCommitted)
		settles(t, tx, cfg, success(&task))
		defer rollsBack(t, tx)
		settling.Go(func() {
			_, err := s.Settle(t.Context(), now, []queue.Outcome{success(&task)})
			if !errors.Is(err, queue.ErrUnavailable) {
				t.Errorf("settle while the transaction is open: %v", err)
			}
		})
	}
	settled := make(chan struct{})
	go func() {
		settling.Wait()
		close(settled)
	}()
	for waits := true; waits && s.Leads(); {
		select {
		case <-settled:
			waits = false
		case <-time.After(time.Millisecond):
		}
	}
	if !s.Leads() {
		t.Errorf("the lease of the leader has ended: %v", s.Trouble())
	}
	<-settled
}
