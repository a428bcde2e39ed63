package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// Tasks, statistics and the header of an answer have the times of the client's clock.
func TestC8_AnswersAreByTheClientsClock(t *testing.T) {
	store := memstore.New(memstore.Config{})
	s := server.New(store, server.Config{})
	now := time.Now()
	deadline := queue.Options{Deadline: now.Add(time.Hour)}
	task := queue.NewTask{ID: new(queue.IDs).New(now), Spec: queue.Spec{Kind: "k", Options: deadline}}
	if _, err := store.Submit(t.Context(), now, []queue.NewTask{task}); err != nil {
		t.Fatal(err)
	}
	const behind = 1000 * time.Hour
	ask := func(r *http.Request, out any) {
		t.Helper()
		client := time.Now().Add(-behind)
		r.Header.Set(wire.Now, client.Format(time.RFC3339Nano))
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil || rec.Code != http.StatusOK {
			t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
		}
		if at, err := time.Parse(time.RFC3339Nano, rec.Header().Get(wire.Now)); err != nil || !at.Equal(client) {
			t.Errorf("asked at %v, it answers at %v, %v", client, at, err)
		}
	}
	// near reports whether a time is right to within an hour.
	near := func(got, want time.Time) bool { return got.Sub(want).Abs() < time.Hour }
	var tasks wire.Tasks
	ask(request(http.MethodPost, wire.Find, "{}"), &tasks)
	got := tasks.Tasks[0]
	for what, at := range map[string][2]time.Time{
		"submitted": {got.Submitted, now}, "changed": {got.Changed, now}, "step": {got.Steps[0].At, now},
		"deadline": {got.Deadline, now.Add(time.Hour)},
	} {
		if want := at[1].Add(-behind); !near(at[0], want) {
			t.Errorf("%s: %v, want %v", what, at[0], want)
		}
	}
	if !got.RunAt.IsZero() || !got.Lease.Until.IsZero() {
		t.Errorf("times that are not set are %v and %v", got.RunAt, got.Lease.Until)
	}
	var stats queue.Stats
	ask(request(http.MethodGet, wire.Stats, ""), &stats)
	if oldest := stats.Queues["default"].Oldest; !near(oldest, now.Add(-behind)) {
		t.Errorf("the oldest task waits since %v", oldest)
	}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, request(http.MethodPost, wire.Find, `{"filter":{"key":"none"}}`))
	if got := strings.TrimSpace(rec.Body.String()); got != `{"tasks":[]}` {
		t.Errorf("an empty page is %s", got)
	}
	tasks = wire.Tasks{}
	from := now.Add(-behind - time.Minute).UTC().Format(time.RFC3339Nano)
	to := now.Add(-behind + time.Hour).UTC().Format(time.RFC3339Nano)
	ask(request(http.MethodPost, wire.Find, `{"filter":{"from":"`+from+`","to":"`+to+`"}}`), &tasks)
	if len(tasks.Tasks) != 1 {
		t.Errorf("submitted from %s to %s are %d tasks", from, to, len(tasks.Tasks))
	}
}

// The answer to a repeated claim is by the client's clock as it is then.
func TestC8_RepeatedClaimsAreByTheClientsClock(t *testing.T) {
	store := memstore.New(memstore.Config{})
	submitted(t, store, 1)
	s := server.New(store, server.Config{})
	for _, behind := range []time.Duration{0, 1000 * time.Hour} {
		client := time.Now().Add(-behind)
		r := keyed(wire.Claim, `{"worker":"w","kinds":["k"],"max":1,"lease_ns":60000000000}`, "key")
		r.Header.Set(wire.Now, client.Format(time.RFC3339Nano))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var out queue.Claimed
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || len(out.Tasks) != 1 {
			t.Fatalf("a claim is answered %d %s", w.Code, w.Body)
		}
		if left := out.Tasks[0].Lease.Until.Sub(client); left < 0 || left > time.Hour {
			t.Errorf("with a clock that is %s behind, the lease ends in %s", behind, left)
		}
	}
}

// takesTime is the body of a call that takes a time to arrive.
type takesTime struct {
	io.Reader
	now  *time.Time
	time time.Duration
}

func (b *takesTime) Read(p []byte) (int, error) {
	*b.now, b.time = b.now.Add(b.time), 0
	return b.Reader.Read(p)
}

// The time that the body of a call takes is not counted as a difference of the clocks.
func TestC8_SlowBodyMovesNoTimes(t *testing.T) {
	now := time.Now()
	store := memstore.New(memstore.Config{})
	s := server.New(store, server.Config{Clock: func() time.Time { return now }})
	runAt := now.Add(time.Hour).UTC()
	task := queue.NewTask{ID: new(queue.IDs).New(now), Spec: queue.Spec{Kind: "k", Options: queue.Options{RunAt: runAt}}}
	call, err := json.Marshal(wire.SubmitCall{Tasks: []queue.NewTask{task}})
	if err != nil {
		t.Fatal(err)
	}
	r := request(http.MethodPost, wire.Submit, "")
	r.Header.Set(wire.Now, now.Format(time.RFC3339Nano))
	r.Body, r.ContentLength = io.NopCloser(&takesTime{bytes.NewReader(call), &now, 5 * time.Second}), int64(len(call))
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	found, err := store.Find(t.Context(), queue.Filter{IDs: []queue.ID{task.ID}}, queue.Page{})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d %s: found %v, %v", rec.Code, rec.Body, found, err)
	}
	if moved := found[0].RunAt.Sub(runAt); moved != 0 {
		t.Errorf("the time to run at is %s later", moved)
	}
}

// Every time in the calls and answers is converted, except those of schedules. What an answer shares with the store
// stays as it is.
func TestC8_EveryTimeIsConverted(t *testing.T) {
	const ahead = time.Hour
	base := time.Date(2026, time.November, 27, 10, 0, 0, 0, time.UTC)
	for _, calls := range []struct {
		convert func(any, time.Duration)
		want    time.Time
		all     []any
	}{
		{server.ToServer, base.Add(ahead), []any{
			new(wire.SubmitCall), new(queue.Claim), new(wire.SettleCall), new(wire.HeartbeatCall), new(queue.Command),
			new(wire.FindCall), new(wire.ConfigureCall), new(wire.PauseCall), new(wire.MaintainCall), new(wire.JobsCall),
		}},
		{server.ToClient, base.Add(-ahead), []any{
			new(wire.Receipts), new(queue.Claimed), new(wire.Settled), new(wire.Answers), new(wire.Changed), new(wire.Tasks),
			new(wire.Maintained), new(wire.JobsState), new(wire.Reasons), new(queue.Stats), new(wire.AllSettings),
			new(queue.Event),
		}},
	} {
		for _, call := range calls.all {
			v := reflect.ValueOf(call).Elem()
			fill(v, base)
			calls.convert(call, ahead)
			visit(v, v.Type().String(), func(path string, at time.Time) {
				if !at.Equal(calls.want) {
					t.Errorf("%s is %s; want %s", path, at, calls.want)
				}
			})
		}
	}
	var shared queue.Configured
	fill(reflect.ValueOf(&shared).Elem(), base)
	server.ToClient(&wire.AllSettings{Settings: map[string]queue.Configured{"q": shared}}, ahead)
	server.ToClient(&queue.Stats{Queues: map[string]queue.Counts{"q": {Limits: shared.InForce}}}, ahead)
	visit(reflect.ValueOf(shared), "the store's", func(path string, at time.Time) {
		if !at.Equal(base) {
			t.Errorf("%s has become %s", path, at)
		}
	})
}

// fill sets the times in a value, with an element in each of its lists and maps.
func fill(v reflect.Value, at time.Time) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(at))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), at)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), at)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, at)
		v.SetMapIndex(reflect.Zero(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), at)
			}
		}
	default:
	}
}

// visit calls fn for the times in a value, with their paths.
func visit(v reflect.Value, path string, fn func(path string, at time.Time)) {
	if at, ok := reflect.TypeAssert[time.Time](v); ok {
		fn(path, at)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		visit(v.Elem(), path, fn)
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), path+"[]", fn)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			visit(v.MapIndex(key), path+"[]", fn)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				visit(v.Field(i), path+"."+v.Type().Field(i).Name, fn)
			}
		}
	default:
	}
}
