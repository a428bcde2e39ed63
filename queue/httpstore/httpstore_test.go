package httpstore_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/queue/storetest"
	"github.com/stintgo/stint/server"
)

// believe has the server take the time that the client says it is: that of the
// suite, which goes as it likes.
func believe(client time.Time) time.Time { return client }

// serve serves a store by TCP until the test ends, and returns its address.
func serve(t *testing.T, store queue.Store, cfg server.Config) string {
	t.Helper()
	s := server.New(store, cfg)
	hs := httptest.NewServer(s)
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
	address := serve(t, memstore.New(memstore.Config(cfg)), server.Config{Clock: believe})
	return storetest.Harness{Store: open(t, address, httpstore.Config{WatchBuffer: cfg.WatchBuffer}), Remote: true}
}

func TestStore(t *testing.T) { storetest.Run(t, overMemory) }

func TestModel_Store(t *testing.T) { storetest.Model(t, overMemory, 600) }
