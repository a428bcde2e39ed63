package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
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
	tasks = wire.Tasks{}
	from := now.Add(-behind - time.Minute).UTC().Format(time.RFC3339Nano)
	to := now.Add(-behind + time.Hour).UTC().Format(time.RFC3339Nano)
	ask(request(http.MethodPost, wire.Find, `{"filter":{"from":"`+from+`","to":"`+to+`"}}`), &tasks)
	if len(tasks.Tasks) != 1 {
		t.Errorf("submitted from %s to %s are %d tasks", from, to, len(tasks.Tasks))
	}
}
