package dbrows_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/stall"
)

const (
	lease   = 2 * time.Second  // the default
	attempt = 10 * time.Second // the limit of one
	ms      = time.Millisecond
)

func open(t *testing.T, db dbrows.DB, cfg dbrows.Config) *dbrows.Rows {
	t.Helper()
	cfg.Server = "the server"
	r, err := dbrows.Open(t.Context(), db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func closes(t *testing.T, rows ...*dbrows.Rows) {
	t.Helper()
	for _, r := range rows {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func apply(r *dbrows.Rows, key string) error {
	return r.Apply([]journal.Change{{Key: key, Value: []byte("first")}, {Key: key, Value: []byte(key)}})
}

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestC11_OneProcessLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first := open(t, s.connect(t, nil), dbrows.Config{Leader: queue.Leader{Name: "first", Contact: "here"}})
		time.Sleep(10 * lease) // it renews its lease
		_, err := dbrows.Open(t.Context(), s.connect(t, nil), dbrows.Config{Server: "the server"})
		var led *queue.LedError
		if !errors.As(err, &led) || !errors.Is(err, queue.ErrLed) || led.Left > lease ||
			led.Name != "first" || led.Contact != "here" {
			t.Errorf("the second process gets %v", err)
		}
		closes(t, first)
		before := time.Now()
		second := open(t, s.connect(t, nil), dbrows.Config{})
		if waited := time.Since(before); waited != 0 || second.Epoch() <= first.Epoch() {
			t.Errorf("after Close, the next process waits %s and has epoch %d, after %d",
				waited, second.Epoch(), first.Epoch())
		}
		closes(t, second)
	})
}

// A process whose Lead was answered with an error leads nevertheless, and a Lead that the
// server carries out late does not depose its own process.
func TestC11_LeadIsRepeated(t *testing.T) {
	for name, f := range map[string]fault{
		"lost answer": {after: errBroken}, "lost call": {before: errBroken}, "late call": {late: 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			before := time.Now()
			r := open(t, s.connect(t, inTurn(map[op][]fault{opLead: {f}})), dbrows.Config{})
			if waited := time.Since(before); waited > 3*time.Second {
				t.Errorf("%s: it leads after %s", name, waited)
			}
			time.Sleep(2 * lease)
			if err := apply(r, "a"); err != nil || isClosed(r.Lost()) {
				t.Errorf("%s: a batch of the leader: %v", name, err)
			}
			closes(t, r)
		})
	}
}

// Open ends after 5 s or with its context, and its error has the reason.
func TestC11_OpenWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken, silent := fault{before: errBroken}, fault{late: time.Hour}
		ended, end := context.WithCancel(t.Context())
		end()
		for _, test := range []struct {
			ctx    context.Context //nolint:containedctx // of a case
			faults func(op) fault
			within time.Duration
			want   error
		}{
			{t.Context(), func(op) fault { return broken }, 5 * time.Second, errBroken},
			{t.Context(), inTurn(map[op][]fault{opLead: {broken, silent, silent}}), 5 * time.Second, errBroken},
			{ended, nil, 0, context.Canceled},
		} {
			s := newServer()
			c := s.connect(t, test.faults)
			before := time.Now()
			_, err := dbrows.Open(test.ctx, c, dbrows.Config{Server: "the server"})
			if took := time.Since(before); took > test.within || !errors.Is(err, test.want) ||
				!strings.Contains(err.Error(), "the server:") {
				t.Errorf("after %s: %v, want %v", took, err, test.want)
			}
			if !c.closed {
				t.Error("Open has failed, and has not closed the connections")
			}
			c.late.Wait()
		}
		s := newServer()
		s.term.Epoch = 1<<24 - 1
		_, err := dbrows.Open(t.Context(), s.connect(t, nil), dbrows.Config{})
		if err == nil || !strings.Contains(err.Error(), "leaders") {
			t.Errorf("after the last epoch: %v", err)
		}
	})
}

// Whatever becomes of the attempts, a batch is made once, and Apply says so.
func TestC6_UnknownOutcomes(t *testing.T) {
	broken, lost := fault{before: errBroken}, fault{after: errBroken}
	in := func(d time.Duration) fault { return fault{late: d} }
	for name, faults := range map[string]map[op][]fault{
		"call lost":                      {opApply: {broken}},
		"answer lost":                    {opApply: {lost}},
		"answer of the second one lost":  {opApply: {broken, lost}},
		"several":                        {opApply: {broken, broken, broken, lost}},
		"look fails":                     {opApply: {lost}, opTerm: {broken, lost, in(time.Minute)}},
		"made while Apply looks":         {opApply: {in(attempt + 7*ms)}, opTerm: {in(5 * ms)}},
		"made before the second one":     {opApply: {in(attempt + 6*ms), in(2 * ms)}},
		"made after the second one":      {opApply: {in(time.Minute)}},
		"made after the second was lost": {opApply: {in(11 * time.Second), broken, broken, in(15 * time.Second)}},
		"all are late":                   {opApply: {in(11 * time.Second), in(21 * time.Second), in(41 * time.Second)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			c := s.connect(t, inTurn(faults))
			r := open(t, c, dbrows.Config{})
			for _, key := range []string{"a", "b", "c"} {
				if err := apply(r, key); err != nil || string(s.rows[key]) != key {
					t.Errorf("%s: %v, and the row is %q", name, err, s.rows[key])
				}
			}
			c.late.Wait()
			for _, key := range []string{"a", "b", "c"} {
				if n := s.made(key); n != 1 {
					t.Errorf("%s: the batch of %s was made %d times", name, key, n)
				}
			}
			closes(t, r)
		})
	}
}

// A batch that takes longer than the limit of an attempt succeeds in the end: the server
// cancels a write whose caller has left.
func TestC6_LargeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 35 * time.Second
		s := newServer()
		c := cancelling{s.connect(t, nil), takes}
		r := open(t, c, dbrows.Config{})
		before := time.Now()
		if err := apply(r, "a"); err != nil || time.Since(before) > 3*takes {
			t.Errorf("after %s: %v", time.Since(before), err)
		}
		closes(t, r)
	})
}

// cancelling is a server that takes long for a batch, and cancels it if its caller leaves.
type cancelling struct {
	*connection
	takes time.Duration
}

func (c cancelling) Apply(ctx context.Context, t dbrows.Term, changes []journal.Change) error {
	select {
	case <-time.After(c.takes):
		return c.connection.Apply(ctx, t, changes)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A leader whose successor has taken over gets an error, whether or not its last batch was
// made, and Lost is closed.
func TestC11_DeposedLeader(t *testing.T) {
	for name, f := range map[string]fault{
		"refused": {}, "unknown": {after: errBroken}, "not made": {before: errBroken}, "hangs": {late: time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			var second *dbrows.Rows
			succeed := func() {
				s.endLease()
				second = open(t, s.connect(t, nil), dbrows.Config{})
			}
			faults := map[op][]fault{opApply: {{}, f}}
			if f.after != nil {
				faults[opApply][1].then = succeed
			}
			c := s.connect(t, inTurn(faults))
			first := open(t, c, dbrows.Config{})
			if err := apply(first, "a"); err != nil {
				t.Fatal(err)
			}
			if second == nil && f.after == nil {
				succeed()
			}
			before := time.Now()
			err := apply(first, "b")
			if took := time.Since(before); !errors.Is(err, dbrows.ErrFenced) || !errors.Is(err, queue.ErrLed) || took > lease {
				t.Errorf("%s: after %s: %v", name, took, err)
			}
			_, getErr := first.Get("a")
			if !isClosed(first.Lost()) || first.Room() == nil || getErr == nil {
				t.Errorf("%s: it is not noticed: Room %v, Get %v", name, first.Room(), getErr)
			}
			n := s.made("b")
			if err := apply(second, "c"); err != nil {
				t.Errorf("%s: its successor: %v", name, err)
			}
			c.late.Wait()
			if s.made("b") != n || s.made("c") != 1 {
				t.Errorf("%s: the batch was made after the successor led", name)
			}
			closes(t, first, second)
		})
	}
}

// A leader without calls notices its successor when it renews its lease.
func TestC11_IdleLeaderIsDeposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first := open(t, s.connect(t, nil), dbrows.Config{})
		s.endLease()
		second := open(t, s.connect(t, nil), dbrows.Config{})
		time.Sleep(lease)
		if !isClosed(first.Lost()) {
			t.Error("Lost is not closed")
		}
		closes(t, first, second)
		if s.resigns != 1 {
			t.Errorf("%d processes have resigned, want the second one", s.resigns)
		}
	})
}

// TestC11_ClockOfTheServer: the time is that of the server from the beginning, although the
// first request for it was lost. If the server's clock is set, the renewals notice it,
// and the time follows slowly.
func TestC11_ClockOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.ahead = -10 * time.Minute
		lost := false
		r := open(t, s.connect(t, func(o op) (f fault) {
			if o == opNow && !lost {
				lost, f.before = true, errBroken
			}
			return f
		}), dbrows.Config{})
		off := func() time.Duration { return r.Now().Sub(time.Now().Round(0)) }
		if got := off(); !lost || got != s.ahead {
			t.Errorf("the time is %v ahead, want %v; a request was lost: %t", got, s.ahead, lost)
		}
		time.Sleep(time.Hour)
		if got := off(); got != s.ahead {
			t.Errorf("the time is %v ahead after an hour, want %v", got, s.ahead)
		}
		before := s.ahead
		s.set(func() { s.ahead += 10 * time.Second })
		time.Sleep(10 * time.Minute)
		if moved := off() - before; moved < 2500*time.Millisecond || moved > 3*time.Second {
			t.Errorf("ten minutes after the clock was set 10 s forward, the time has followed by %v, want some 3 s", moved)
		}
		time.Sleep(time.Hour)
		if got := off(); got != before+10*time.Second {
			t.Errorf("the time is %v ahead at last, want %v", got, before+10*time.Second)
		}
		closes(t, r)
	})
}

// A server that has lost batches or leaders is noticed.
func TestC6_ServerLosesChanges(t *testing.T) {
	for name, lose := range map[string]func(*server){
		"a batch":               func(s *server) { s.term.Batch-- },
		"an epoch":              func(s *server) { s.term.Epoch-- },
		"nothing, and has more": func(s *server) { s.term.Batch += 2 },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			r := open(t, s.connect(t, nil), dbrows.Config{})
			if err := errors.Join(apply(r, "a"), apply(r, "b")); err != nil {
				t.Fatal(err)
			}
			s.set(func() { lose(s) })
			if err := apply(r, "c"); !errors.Is(err, dbrows.ErrLost) || !isClosed(r.Lost()) {
				t.Errorf("%s: %v", name, err)
			}
			closes(t, r)
		})
	}
}

// log collects records.
type log struct {
	bytes.Buffer

	recovered func() // called with the record that calls no longer fail; may be nil
}

func (l *log) Write(record []byte) (int, error) {
	if l.recovered != nil && bytes.Contains(record, []byte("no longer fail")) {
		l.recovered()
	}
	return l.Buffer.Write(record)
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// While a call is blocked, by a server that is silent or refuses it, callers get the reason
// after 3 s, though other calls succeed. It is logged once a minute.
func TestC6_CallersDoNotWaitForTheServer(t *testing.T) {
	denied := errors.New("permission denied")
	for name, test := range map[string]struct {
		f    fault
		says string
	}{
		"refused": {fault{before: denied}, "permission denied"},
		"silent":  {fault{late: 24 * time.Hour}, "no answer"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, l := newServer(), log{}
			c := s.connect(t, nil)
			r := open(t, c, dbrows.Config{Logger: l.logger()})
			l.recovered = func() {
				if isClosed(r.Stalled()) {
					t.Errorf("%s: calls are refused though the log says that they no longer fail", name)
				}
			}
			stop := time.Now().Add(time.Hour)
			c.fault = func(o op) (f fault) {
				if o == opApply && time.Now().Before(stop) {
					f = test.f
				}
				return f
			}
			done, before := make(chan error), time.Now()
			go func() { done <- apply(r, "a") }()
			if time.Sleep(stall.AnswerWithin - 1); r.Room() != nil {
				t.Errorf("%s: too early: %v", name, r.Room())
			}
			<-r.Stalled()
			if waited := time.Since(before); waited > stall.AnswerWithin {
				t.Errorf("%s: callers wait %s", name, waited)
			}
			for range 10 {
				if _, err := r.Get("a"); err != nil {
					t.Error(err)
				}
				if err := r.Room(); err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%s: the reason is %v", name, err)
				}
				time.Sleep(time.Second)
			}
			if err := <-done; err != nil {
				t.Errorf("%s: when the server is back: %v", name, err)
			}
			if isClosed(r.Stalled()) || r.Room() != nil {
				t.Errorf("%s: when the server is back, Room returns %v", name, r.Room())
			}
			if n := strings.Count(l.String(), "level=WARN"); n < 2 || n > 61 {
				t.Errorf("%s: %d warnings in an hour", name, n)
			}
			if n := strings.Count(l.String(), "level=INFO"); n != 1 {
				t.Errorf("%s: its end is logged %d times", name, n)
			}
			r.GiveUpSoon()
			closes(t, r)
			c.late.Wait()
		})
	}
}

// A read ends after 3 s without an answer, and after a tenth of a second if callers do not
// wait for the server any more: the machine is locked meanwhile.
func TestC6_ReadsEndWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		c := newServer().connect(t, func(o op) (f fault) {
			if silent.Load() && (o == opGet || o == opScan || o == opApply) {
				f.late = 24 * time.Hour
			}
			return f
		})
		r := open(t, c, dbrows.Config{})
		silent.Store(true)
		r.Opened()
		reads := func(want time.Duration) {
			t.Helper()
			for name, read := range map[string]func() error{
				"get": func() error {
					_, err := r.Get("a")
					return err
				},
				"scan": func() error { return r.Scan("a", "b", false, func(string, []byte) bool { return true }) },
			} {
				before := time.Now()
				if err := read(); !errors.Is(err, journal.ErrAway) || time.Since(before) != want {
					t.Errorf("%s, after %s: %v; want %s", name, time.Since(before), err, want)
				}
			}
		}
		reads(stall.AnswerWithin)
		done := make(chan error)
		go func() { done <- apply(r, "a") }()
		<-r.Stalled()
		reads(100 * time.Millisecond)
		silent.Store(false)
		if _, err := r.Get("a"); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		closes(t, r)
		c.late.Wait()
	})
}

// TestC11_DeposedLeaderReadsNothing: what another leader has written is not read as the
// state of this one, whose lease has ended while it was stopped.
func TestC11_DeposedLeaderReadsNothing(t *testing.T) {
	for name, read := range map[string]func(*dbrows.Rows) error{
		"get": func(r *dbrows.Rows) error {
			_, err := r.Get("a")
			return err
		},
		"scan":  func(r *dbrows.Rows) error { return r.Scan("a", "b", false, func(string, []byte) bool { return true }) },
		"first": func(r *dbrows.Rows) error { return r.Scan("a", "b", true, func(string, []byte) bool { return false }) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			var stopped atomic.Bool
			first := open(t, s.connect(t, func(o op) (f fault) {
				if o == opRenew && stopped.Load() { // as if the process was stopped
					f.before = errBroken
				}
				return f
			}), dbrows.Config{})
			if err := apply(first, "a"); err != nil {
				t.Fatal(err)
			}
			stopped.Store(true)
			time.Sleep(2 * lease)
			if err := read(first); err != nil {
				t.Errorf("%s, before another leads: %v", name, err)
			}
			second := open(t, s.connect(t, nil), dbrows.Config{})
			if err := apply(second, "b"); err != nil {
				t.Error(err)
			}
			if err := read(first); !errors.Is(err, queue.ErrLed) || !isClosed(first.Lost()) {
				t.Errorf("%s, when another leads: %v", name, err)
			}
			closes(t, second)
			closes(t, first)
		})
	}
}

// A call that ends without an answer is not logged as the end of the failures.
func TestC6_GivingUpIsNoRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := log{}
		c := newServer().connect(t, func(op) fault { return fault{before: errBroken} })
		if _, err := dbrows.Open(t.Context(), c, dbrows.Config{Logger: l.logger()}); !errors.Is(err, errBroken) {
			t.Error(err)
		}
		if text := l.String(); !strings.Contains(text, "level=WARN") || strings.Contains(text, "level=INFO") {
			t.Errorf("it logs:\n%s", text)
		}
	})
}

// Scan calls fn once for each key, whatever fails, and not after it has returned false.
func TestScan_Continues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 20
		s := newServer()
		var want []string
		for i := range keys {
			key := fmt.Sprintf("k%02d", i)
			s.rows[key] = []byte(key)
			want = append(want, key)
		}
		s.rows["j"], s.rows["l"] = []byte{}, []byte{}
		for failing := range keys {
			for _, f := range []fault{{before: errBroken}, {after: errBroken}, {late: time.Hour}} {
				for _, down := range []bool{false, true} {
					c := s.connect(t, inTurn(map[op][]fault{opGet: append(make([]fault, failing), f), opScan: {f}}))
					r := open(t, c, dbrows.Config{})
					var got []string
					before := time.Now()
					err := r.Scan("k", "l", down, func(key string, value []byte) bool {
						got = append(got, key)
						return string(value) == key
					})
					if down {
						slices.Reverse(got)
					}
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("with a fault at row %d, Scan finds %v, error %v", failing, got, err)
					}
					if took := time.Since(before); took > 4*attempt { // both faults: 10 s and 20 s
						t.Errorf("with a fault at row %d, Scan takes %s", failing, took)
					}
					closes(t, r)
					c.late.Wait()
				}
			}
		}
	})
}

// After fn has returned false, an error of the server is none of Scan.
func TestScan_Stopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.rows["a"], s.rows["b"] = []byte("a"), []byte("b")
		r := open(t, failingScan{s.connect(t, nil)}, dbrows.Config{})
		calls := 0
		err := r.Scan("a", "z", false, func(string, []byte) bool { calls++; return false })
		if calls != 1 || err != nil {
			t.Errorf("fn, which returns false, is called %d times; error %v", calls, err)
		}
		closes(t, r)
	})
}

// failingScan fails when the last row has been read.
type failingScan struct{ *connection }

func (c failingScan) Scan(
	ctx context.Context, from, to string, down bool, fn func(key string, value []byte) bool,
) error {
	return errors.Join(c.connection.Scan(ctx, from, to, down, fn), errBroken)
}

// A Scan may take any time while keys arrive.
func TestScan_Long(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		for i := range 100 {
			s.rows[fmt.Sprint("k", i)] = []byte{}
		}
		c := s.connect(t, func(o op) (f fault) {
			if o == opGet {
				f.late = 5 * time.Second
			}
			return f
		})
		r := open(t, c, dbrows.Config{})
		n := 0
		if err := r.Scan("k", "l", false, func(string, []byte) bool { n++; return true }); err != nil || n != 100 {
			t.Errorf("Scan finds %d of 100 rows, error %v", n, err)
		}
		if attempts := c.count(opScan); attempts != 1 {
			t.Errorf("Scan took %d attempts", attempts)
		}
		closes(t, r)
	})
}

// Close ends calls that hang, closes the connections when they have returned, and refuses
// later ones.
func TestC11_CloseDuringCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := s.connect(t, nil)
		r := open(t, c, dbrows.Config{})
		l := r.LeaseLog()
		c.fault = func(o op) (f fault) {
			if o != opResign {
				f.late = time.Hour
			}
			return f
		}
		errs := make(chan error, 4)
		go func() { errs <- apply(r, "a") }()
		go func() { _, err := r.Get("a"); errs <- err }()
		go func() { errs <- r.Scan("a", "b", false, func(string, []byte) bool { return true }) }()
		go func() { _, err := l.Put(entries(t, l, 1)); errs <- err }()
		time.Sleep(time.Second)
		before := time.Now()
		closes(t, r)
		if took := time.Since(before); took > time.Second {
			t.Errorf("Close takes %s", took)
		}
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, queue.ErrClosed) {
				t.Errorf("a call during Close: %v", err)
			}
		}
		_, put := l.Put(entries(t, l, 1))
		_, get := r.Get("a")
		for _, err := range []error{put, get, apply(r, "b"), r.Room()} {
			if !errors.Is(err, queue.ErrClosed) {
				t.Errorf("a call after Close: %v", err)
			}
		}
		if s.resigns != 1 {
			t.Errorf("Close has resigned %d times", s.resigns)
		}
		c.late.Wait()
	})
}

// Without a server, GiveUpSoon ends a batch after 5 s, and Close takes no longer.
func TestC11_CloseWithoutServer(t *testing.T) {
	for name, f := range map[string]fault{"fails": {before: errBroken}, "silent": {late: time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			c := newServer().connect(t, nil)
			r := open(t, c, dbrows.Config{})
			c.fault = func(op) fault { return f }
			before := time.Now()
			r.GiveUpSoon()
			if err := apply(r, "a"); !errors.Is(err, queue.ErrClosed) || time.Since(before) > 5*time.Second {
				t.Errorf("%s: after %s: %v", name, time.Since(before), err)
			}
			closes(t, r)
			if took := time.Since(before); took > 13*time.Second {
				t.Errorf("%s: closed after %s", name, took)
			}
			c.late.Wait()
		})
	}
}

// Resign is repeated after a broken connection, and no renewal comes after it.
func TestC11_CloseHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c := s.connect(t, inTurn(map[op][]fault{
			opRenew: {{late: time.Second}}, opResign: {{before: errBroken}},
		}))
		r := open(t, c, dbrows.Config{})
		time.Sleep(lease/3 + time.Second/2) // in the middle of a renewal
		closes(t, r)
		c.late.Wait()
		closes(t, open(t, s.connect(t, nil), dbrows.Config{}))
	})
}

// A leader keeps the lead while the server takes more than half of its lease to answer.
func TestC11_SlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.ahead = time.Minute
		c := s.connect(t, func(o op) (f fault) {
			if o == opRenew || o == opNow {
				f.late = 1200 * ms
			}
			return f
		})
		r := open(t, c, dbrows.Config{Lease: 2 * time.Second})
		s.set(func() { s.ahead += 100 * ms })
		for range 600 {
			if time.Sleep(100 * ms); !r.Leads() {
				t.Fatal("the lease of the leader has ended")
			}
		}
		if off := r.Now().Sub(time.Now().Round(0)); off <= time.Minute {
			t.Errorf("the clock of the server is read no more: it is %s ahead, and was a minute", off)
		}
		closes(t, r)
		c.late.Wait()
	})
}
