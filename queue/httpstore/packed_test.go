package httpstore_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/internal/wiretest"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/queue/storetest"
	"github.com/stintgo/stint/server"
)

// otherTypes is a server whose types differ from those of the client, so that it knows none of its
// packed calls. One of a version without packed calls refuses their type.
type otherTypes struct {
	http.Handler
	status int
	code   string

	mu    sync.Mutex
	paths []string // of all calls
}

func (o *otherTypes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.paths = append(o.paths, r.URL.Path)
	status := o.status
	o.mu.Unlock()
	if !wire.IsPacked(r.URL.Path) || status == 0 {
		o.Handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", wire.ProblemJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(wire.Problem{Status: status, Code: o.code})
}

func notPacked(h http.Handler) http.Handler {
	return &otherTypes{Handler: h, status: http.StatusNotFound, code: wire.UnknownCall}
}

// overJSON is a store in memory behind a server to which no call is packed.
func overJSON(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	address := serve(t, memstore.New(memstore.Config(cfg)), server.Config{}, wiretest.ClientTime, notPacked)
	return storetest.Harness{Store: open(t, address, httpstore.Config{WatchBuffer: cfg.WatchBuffer}), Remote: true}
}

func TestStore_JSON(t *testing.T) { storetest.Run(t, overJSON) }

// TestC11_ServersOfOtherTypes: a call that a server does not know is made in JSON, as are those of the
// next minute. Then calls are packed again: another server may have taken its place.
func TestC11_ServersOfOtherTypes(t *testing.T) {
	for _, other := range []struct {
		status int
		code   string
	}{{http.StatusNotFound, wire.UnknownCall}, {http.StatusUnsupportedMediaType, wire.UnknownType}} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New(memstore.Config{})
			o := &otherTypes{status: other.status, code: other.code}
			n := &network{t: t}
			n.start(store, server.Config{}, func(h http.Handler) http.Handler {
				o.Handler = h
				return o
			})
			transport := &http.Transport{DialContext: n.dial}
			defer transport.CloseIdleConnections()
			s := open(t, "http://localhost", httpstore.Config{Transport: transport})
			var ids queue.IDs
			submit := func() {
				t.Helper()
				task := queue.NewTask{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "k"}}
				if _, err := s.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
					t.Fatal(err)
				}
			}
			packed, _ := wire.PackedPath(wire.Submit)
			submit()
			submit()
			time.Sleep(time.Minute)
			submit()
			o.mu.Lock()
			o.status = 0 // the other server
			o.mu.Unlock()
			time.Sleep(time.Minute)
			submit()
			want := []string{packed, wire.Submit, wire.Submit, packed, wire.Submit, packed}
			if !slices.Equal(o.paths, want) {
				t.Errorf("%d: the calls are %q, want %q", other.status, o.paths, want)
			}
			if tasks := count(t, store, queue.Waiting); tasks != 4 {
				t.Errorf("%d tasks were submitted, want 4", tasks)
			}
		})
	}
}

// TestC11_ClaimsAtServersOfOtherTypes: a packed claim without an answer is repeated in JSON at a server
// of other types.
func TestC11_ClaimsAtServersOfOtherTypes(t *testing.T) {
	var repeated *http.Request
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		switch {
		case repeated == nil && wire.IsPacked(r.URL.Path):
			repeated = r
			return nil, errReset
		case wire.IsPacked(r.URL.Path):
			return fixedAnswer{http.StatusNotFound, wire.ProblemJSON, `{"status":404,"code":"unknown_call"}`}.RoundTrip(r)
		case r.URL.Path != wire.Claim || r.Header.Get(wire.Key) != repeated.Header.Get(wire.Key):
			return nil, errors.New("another call: " + r.URL.Path)
		}
		return fixedAnswer{http.StatusOK, wire.JSON, `{}`}.RoundTrip(r)
	})
	s := open(t, "http://127.0.0.1:1", httpstore.Config{Transport: transport})
	if _, err := s.Claim(t.Context(), time.Now(), work(1)); err != nil {
		t.Error(err)
	}
}

// roundTrip is an [http.RoundTripper].
type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
