package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/redisstore"
)

// newDB returns the rows of a store, led by the caller.
func newDB(t *testing.T, prefix string) (dbrows.DB, dbrows.Term) {
	t.Helper()
	db, err := redisstore.NewDB("unix://"+sharedServer(t).socket(), redisstore.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	term, err := db.Lead(t.Context(), queue.Leader{Name: "test", Contact: "here"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return db, term
}

func scan(t *testing.T, db dbrows.DB, from, to string, down bool, most int) (keys []string) {
	t.Helper()
	err := db.Scan(t.Context(), from, to, down, func(key string, _ []byte) bool {
		keys = append(keys, key)
		return len(keys) < most
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestRows_Scan: the keys come in order, over pages, from both ends, and of several letters.
func TestRows_Scan(t *testing.T) {
	db, term := newDB(t, newPrefix())
	var want []string
	var changes []journal.Change
	for i := range 5000 {
		key := fmt.Sprintf("b\x00\xff%d", i)
		want, changes = append(want, key), append(changes, journal.Change{Key: key, Value: []byte{}})
	}
	large := make([]byte, redisstore.PageBytes/2+1)
	for _, key := range []string{"a", "a1", "c1", "c2", "c3", "d"} {
		want, changes = append(want, key), append(changes, journal.Change{Key: key, Value: large})
	}
	slices.Sort(want)
	term.Batch++
	if err := db.Apply(t.Context(), term, changes); err != nil {
		t.Fatal(err)
	}
	down := slices.Clone(want)
	slices.Reverse(down)
	for _, test := range []struct {
		from, to string
		down     bool
		most     int
		want     []string
	}{
		{"", "z", false, 1e6, want},
		{"", "z", true, 1e6, down},
		{"b", "c", false, 1e6, want[2:5002]},
		{want[1000], want[3500], false, 1e6, want[1000:3500]},
		{"a1", "c2", true, 1e6, down[3:5005]},
		{"c", "d", false, 2, []string{"c1", "c2"}},
		{"d", "d", false, 1e6, nil},
		{"d", "d\x00", false, 1e6, []string{"d"}},
		{"e", "", false, 1e6, nil},
	} {
		if got := scan(t, db, test.from, test.to, test.down, test.most); !slices.Equal(got, test.want) {
			t.Errorf("from %q to %q, down %t: %d keys, want %d", test.from, test.to, test.down, len(got), len(test.want))
		}
	}
}

// TestRows_ReadKeys: values come in the order of the keys, until there are enough bytes.
func TestRows_ReadKeys(t *testing.T) {
	db, term := newDB(t, newPrefix())
	term.Batch++
	set := []journal.Change{
		{Key: "t1", Value: []byte("1\x00")}, {Key: "t3", Value: []byte{}}, {Key: "t5", Value: []byte("5")},
	}
	if err := db.Apply(t.Context(), term, set); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		most int
		want [][]byte
	}{
		{1, [][]byte{nil, []byte("1\x00")}},
		{3, [][]byte{nil, []byte("1\x00"), nil, {}, []byte("5")}},
		{100, [][]byte{nil, []byte("1\x00"), nil, {}, []byte("5"), nil}},
	} {
		got, err := db.ReadKeys(t.Context(), []string{"t0", "t1", "t2", "t3", "t5", "t6"}, test.most)
		same := func(a, b []byte) bool { return string(a) == string(b) && (a == nil) == (b == nil) }
		if err != nil || !slices.EqualFunc(got, test.want, same) {
			t.Errorf("up to %d bytes: %q, %v; want %q", test.most, got, err, test.want)
		}
	}
}

// TestRows_Apply: a batch is made once, in its turn, with its removals, or not at all.
func TestRows_Apply(t *testing.T) {
	prefix := newPrefix()
	db, term := newDB(t, prefix)
	ctx := t.Context()
	first := dbrows.Term{Epoch: term.Epoch, Batch: term.Batch + 1}
	set := []journal.Change{{Key: "t1", Value: []byte("\x00\r\n\xff")}, {Key: "u1", Value: []byte{}}}
	if err := db.Apply(ctx, first, set); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"t1": "\x00\r\n\xff", "u1": ""} {
		if value, err := db.Get(ctx, key); err != nil || value == nil || string(value) != want {
			t.Errorf("%s is %q, %v; want %q", key, value, err, want)
		}
	}
	for _, wrong := range []uint64{first.Batch, first.Batch + 2, 0} {
		err := db.Apply(ctx, dbrows.Term{Epoch: term.Epoch, Batch: wrong}, []journal.Change{{Key: "t1"}})
		if err == nil {
			t.Errorf("batch %d was made after %d", wrong, first.Batch)
		}
	}
	second := dbrows.Term{Epoch: term.Epoch, Batch: first.Batch + 1}
	raw, foreign := sharedServer(t).raw(t), "{"+prefix+"}:rows:v"
	raw.Set(ctx, foreign, "of another program", 0)
	changes := []journal.Change{{Key: "t1"}, {Key: "t2", Value: []byte("2")}, {Key: "v1", Value: []byte("1")}}
	if err := db.Apply(ctx, second, changes); err == nil || !strings.Contains(err.Error(), "another program has written") {
		t.Errorf("with a key of another type, Apply returns %v", err)
	}
	if now, err := db.Term(ctx); err != nil || now != first {
		t.Errorf("the term is %v, %v; want %v", now, err, first)
	}
	if keys := scan(t, db, "t", "u", false, 9); !slices.Equal(keys, []string{"t1"}) {
		t.Errorf("a batch that failed has been made in part: %q", keys)
	}
	raw.Del(ctx, foreign)
	if err := db.Apply(ctx, second, changes); err != nil {
		t.Fatal(err)
	}
	if keys := scan(t, db, "t", "w", false, 9); !slices.Equal(keys, []string{"t2", "u1", "v1"}) {
		t.Errorf("the keys are %q", keys)
	}
}

// TestRows_Leases: a row of the lease log does not replace one of a later put.
func TestRows_Leases(t *testing.T) {
	db, term := newDB(t, newPrefix())
	put := func(number uint64, rows ...dbrows.LeaseRow) {
		t.Helper()
		if err := db.PutLeases(t.Context(), term.Epoch, number, rows); err != nil {
			t.Fatal(err)
		}
	}
	const late = 1<<62 + 10 // more than a float64 can count
	put(late, dbrows.LeaseRow{Number: 1, Entries: []byte("first")}, dbrows.LeaseRow{Number: 2, Entries: []byte("second")})
	put(late-1,
		dbrows.LeaseRow{Number: 2, Entries: []byte("overtaken")}, dbrows.LeaseRow{Number: 3, Entries: []byte("third")})
	put(late+1, dbrows.LeaseRow{Number: 1, Entries: []byte("newer\x00")})
	found := map[int]string{}
	if err := db.Leases(t.Context(), func(row dbrows.LeaseRow) { found[row.Number] = string(row.Entries) }); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint(map[int]string{1: "newer\x00", 2: "second", 3: "third"}); fmt.Sprint(found) != want {
		t.Errorf("the rows are %q, want %q", fmt.Sprint(found), want)
	}
	if err := db.PutLeases(t.Context(), term.Epoch-1, late+2, nil); !errors.Is(err, dbrows.ErrFenced) {
		t.Errorf("a put of an earlier epoch returns %v", err)
	}
}

// TestRows_LeaseOfAClockThatWasSetBack: a lease that was taken or given up before the clock of the server was set
// back keeps no other process from leading.
func TestRows_LeaseOfAClockThatWasSetBack(t *testing.T) {
	prefix := newPrefix()
	first, term := newDB(t, prefix)
	const day = 24 * 60 * 60 * 1000
	sharedServer(t).raw(t).HIncrBy(t.Context(), "{"+prefix+"}:leader", "until", day)
	second, err := redisstore.NewDB(sharedServer(t).url(), redisstore.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	next, err := second.Lead(t.Context(), queue.Leader{Name: "second"}, time.Minute)
	if err != nil || next.Epoch != term.Epoch+1 || next.Vacant != 0 {
		t.Errorf("no other process leads: %+v, %v", next, err)
	}
	if err := first.Renew(t.Context(), term.Epoch, time.Minute); !errors.Is(err, dbrows.ErrFenced) {
		t.Errorf("the leader before renews its lease: %v", err)
	}
}

// TestRows_Lead: the DB that leads keeps its epoch, another one has to wait.
func TestRows_Lead(t *testing.T) {
	prefix := newPrefix()
	first, term := newDB(t, prefix)
	again, err := first.Lead(t.Context(), queue.Leader{Name: "test", Contact: "here"}, time.Minute)
	if err != nil || again != term {
		t.Errorf("led again with %v, %v; want %v", again, err, term)
	}
	second, err := redisstore.NewDB(sharedServer(t).url(), redisstore.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	_, err = second.Lead(t.Context(), queue.Leader{Name: "second"}, time.Minute)
	led, ok := errors.AsType[*queue.LedError](err)
	if !ok || led.Name != "test" || led.Contact != "here" || led.Left <= 50*time.Second || led.Left > time.Minute ||
		time.Since(led.Since).Abs() > time.Hour {
		t.Fatalf("another leads: %+v, %v", led, err)
	}
	if err := first.Resign(t.Context(), term.Epoch); err != nil {
		t.Fatal(err)
	}
	next, err := second.Lead(t.Context(), queue.Leader{Name: "second"}, time.Minute)
	if err != nil || next.Epoch != term.Epoch+1 {
		t.Errorf("led with %v, %v", next, err)
	}
	for name, err := range map[string]error{
		"Renew": first.Renew(t.Context(), term.Epoch, time.Minute),
		"Apply": first.Apply(t.Context(), dbrows.Term{Epoch: term.Epoch, Batch: 1}, nil),
		"Term":  func() error { _, err := first.Term(t.Context()); return err }(),
	} {
		if !errors.Is(err, dbrows.ErrFenced) {
			t.Errorf("%s of the first returns %v", name, err)
		}
	}
	if err := first.Resign(t.Context(), term.Epoch); err != nil {
		t.Errorf("Resign returns %v", err)
	}
}

// TestRows_LeadFormat1: keys of format 1 get the present format from the next leader, not while
// another one leads.
func TestRows_LeadFormat1(t *testing.T) {
	server := newServer(t, "--appendonly", "no")
	raw := server.raw(t)
	const key = "{stint}:leader"
	var all []dbrows.DB
	for range 2 {
		db, err := redisstore.NewDB(server.url(), redisstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		all = append(all, db)
	}
	term, err := all[0].Lead(t.Context(), queue.Leader{Name: "first"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	raw.HSet(t.Context(), key, "format", 1)
	if _, err := all[1].Lead(t.Context(), queue.Leader{Name: "second"}, time.Minute); !errors.Is(err, queue.ErrLed) {
		t.Errorf("while a program of format 1 leads: %v", err)
	}
	if got := raw.HGet(t.Context(), key, "format").Val(); got != "1" {
		t.Errorf("while a program of format 1 leads, the format is %s", got)
	}
	if err := all[0].Resign(t.Context(), term.Epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := all[1].Lead(t.Context(), queue.Leader{Name: "second"}, time.Minute); err != nil {
		t.Errorf("then: %v", err)
	}
	if got := raw.HGet(t.Context(), key, "format").Val(); got != "2" {
		t.Errorf("after a leader of format 2, the format is %s", got)
	}
}

// TestRows_Interrupted: a call returns when its context ends, also if the server hangs.
func TestRows_Interrupted(t *testing.T) {
	server := newServer(t, "--appendonly", "no")
	db, err := redisstore.NewDB(server.url(), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Lead(t.Context(), queue.Leader{Name: "test", Contact: "here"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	server.stop(t)
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)
	if _, err := db.Get(ctx, "t1"); !errors.Is(err, context.Canceled) {
		t.Errorf("Get returns %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
