package httpstore_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// An empty list of IDs is answered without a request: a server of an earlier version takes it
// for no list, and would cancel every task.
func TestC4_NoIDsAskNoServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the server was asked for %s", r.URL.Path)
	}))
	defer s.Close()
	store, err := httpstore.Open(s.URL, httpstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	none := queue.Filter{IDs: []queue.ID{}}
	cancel := queue.Command{Do: queue.OrderCancel, Filter: none}
	if n, err := store.Command(t.Context(), time.Now(), cancel); n != 0 || err != nil {
		t.Errorf("Command changes %d tasks, error %v", n, err)
	}
	if found, err := store.Find(t.Context(), none, queue.Page{}); len(found) != 0 || err != nil {
		t.Errorf("Find finds %d tasks, error %v", len(found), err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
