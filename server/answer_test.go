package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// TestC6_AnswersAreBoundedInBytes: an answer with many large tasks ends at the limit,
// says that there are more, and takes little memory.
func TestC6_AnswersAreBoundedInBytes(t *testing.T) {
	const (
		n     = 60                   // tasks of 1 MiB
		fit   = wire.BytesMost >> 20 // tasks that fit in an answer
		bytes = 200 << 20            // limit for allocations per answer
	)
	store := memstore.New(memstore.Config{})
	defer func() { _ = store.Close() }()
	s := server.New(store, server.Config{})
	defer s.Close()
	var ids queue.IDs
	for range n {
		task := queue.NewTask{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "k", Payload: make([]byte, 1<<20)}}
		if _, err := store.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, body string }{
		{"find", wire.Find, `{"page":{"limit":1000}}`},
		{"claim", wire.Claim, `{"worker":"w","kinds":["k"],"max":1000,"lease_ns":1000000000,"bytes":1000000000}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, request(http.MethodPost, c.path, c.body))
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > bytes {
				t.Errorf("the answer takes %d MiB while it is made", got>>20)
			}
			var got struct {
				wire.Tasks
				Next time.Time `json:"next"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
				t.Fatalf("answered %d, %v", w.Code, err)
			}
			if len(got.Tasks.Tasks) != fit || !got.More && got.Next.IsZero() {
				t.Errorf("the answer has %d tasks, want %d; more: %t, next: %v", len(got.Tasks.Tasks), fit, got.More, got.Next)
			}
		})
	}
}
