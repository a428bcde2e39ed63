package filestore_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/internal/wiretest"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/storetest"
	"github.com/stintgo/stint/server"
)

// TestStore_Remote runs the contract on the store as other processes see it: through
// a server's Unix socket. When the power goes, the server goes with it.
func TestStore_Remote(t *testing.T) {
	storetest.Run(t, func(t *testing.T, cfg storetest.Config) storetest.Harness {
		t.Helper()
		disk, socket := newCrashable(vfs.NewCrashableMem()), filepath.Join(t.TempDir(), "socket")
		open := func(t *testing.T) (store queue.Store, crash func()) {
			t.Helper()
			crash = serve(t, openIn(t, disk, "store", settings(cfg)), socket)
			return dial(t, socket, cfg), crash
		}
		store, crash := open(t)
		return storetest.Harness{
			Store: store, Durable: true, PowerLoss: true, Remote: true,
			Reopen: func(t *testing.T) (store queue.Store) {
				t.Helper()
				crash()
				disk = disk.crash()
				store, crash = open(t)
				return store
			},
			Break: func(n int) { disk.breakAt(n) },
		}
	})
}

// serve serves a store by a socket, until the test ends or crash is called. The
// suite's clock is the client's.
func serve(t *testing.T, store queue.Store, socket string) (crash func()) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(store, server.Config{})
	hs := &httptest.Server{Listener: l, Config: &http.Server{Handler: wiretest.ClientTime(s)}}
	hs.Start()
	crash = func() {
		hs.CloseClientConnections()
		s.Close()
		hs.Close()
	}
	t.Cleanup(crash)
	return crash
}

func dial(t *testing.T, socket string, cfg storetest.Config) *httpstore.Store {
	t.Helper()
	// A call that meets a store without writes is repeated for the length of Patience.
	s, err := httpstore.Open("unix:"+socket, httpstore.Config{
		WatchBuffer: cfg.WatchBuffer, Patience: 100 * time.Millisecond,
	})
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
