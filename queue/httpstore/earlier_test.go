package httpstore_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// TestC11_PagesOfAnEarlierVersion: a server that does not know Page.Durable, and so refuses it,
// answers nevertheless: Wait of a newer node works while an older one leads.
func TestC11_PagesOfAnEarlierVersion(t *testing.T) {
	newer := server.New(memstore.New(memstore.Config{}), server.Config{})
	defer newer.Close()
	const known, unknown = "durable", "durablf"
	earlier := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte(known), []byte(unknown))))
		said := httptest.NewRecorder()
		newer.ServeHTTP(said, r)
		maps.Copy(w.Header(), said.Header())
		w.WriteHeader(said.Code)
		_, _ = w.Write(bytes.ReplaceAll(said.Body.Bytes(), []byte(unknown), []byte(known)))
	}))
	defer earlier.Close()
	s := open(t, earlier.URL, httpstore.Config{})
	var ids queue.IDs
	id := ids.New(time.Now())
	task := queue.NewTask{ID: id, Spec: queue.Spec{Kind: "k"}}
	if _, err := s.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
		t.Fatal(err)
	}
	found, err := s.Find(t.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{Durable: true})
	if err != nil || len(found) != 1 {
		t.Errorf("it finds %d tasks, %v", len(found), err)
	}
}
