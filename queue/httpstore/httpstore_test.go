package httpstore_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/wiretest"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/queue/storetest"
	"github.com/stintgo/stint/server"
)

// wrapped returns a handler inside of others, the first one outermost.
func wrapped(h http.Handler, around []func(http.Handler) http.Handler) http.Handler {
	for _, wrap := range slices.Backward(around) {
		h = wrap(h)
	}
	return h
}

// serve serves a store by TCP until the test ends, and returns its address.
func serve(t *testing.T, store queue.Store, cfg server.Config, around ...func(http.Handler) http.Handler) string {
	t.Helper()
	s := server.New(store, cfg)
	hs := httptest.NewServer(wrapped(s, around))
	t.Cleanup(func() {
		s.Close()
		hs.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return hs.URL
}

// open opens the store of a server, and closes it when the test ends.
func open(t *testing.T, address string, cfg httpstore.Config) *httpstore.Store {
	t.Helper()
	s, err := httpstore.Open(address, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// overMemory is a store in memory behind a server.
func overMemory(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	address := serve(t, memstore.New(memstore.Config(cfg)), server.Config{}, wiretest.ClientTime)
	return storetest.Harness{Store: open(t, address, httpstore.Config{WatchBuffer: cfg.WatchBuffer}), Remote: true}
}

func TestStore(t *testing.T) { storetest.Run(t, overMemory) }

func TestModel_Store(t *testing.T) { storetest.Model(t, overMemory, 600) }
