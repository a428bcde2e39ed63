package server_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// listener is a client that listens, and counts the signals that it gets.
type listener struct {
	header  http.Header
	mu      sync.Mutex
	signals int
}

func (l *listener) Header() http.Header { return l.header }
func (l *listener) WriteHeader(int)     {}
func (l *listener) Flush()              {}

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signals += bytes.Count(p, []byte("queue"))
	return len(p), nil
}

// take returns the number of signals since the last call.
func (l *listener) take() (n int) {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	n, l.signals = l.signals, 0
	return n
}

// listeningTo has n clients listen to the default queue, in turn, until the test ends.
func listeningTo(t *testing.T, s *server.Server, n int) []*listener {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var served sync.WaitGroup
	t.Cleanup(func() {
		stop()
		served.Wait()
	})
	all := make([]*listener, n)
	for i := range all {
		all[i] = &listener{header: make(http.Header)}
		r := request(http.MethodGet, wire.Ready+"?"+wire.QueryQueue+"=", "").WithContext(ctx)
		served.Go(func() { s.ServeHTTP(all[i], r) })
		if got := all[i].take(); got != 1 {
			t.Fatalf("a client gets %d signals at first, want 1", got)
		}
	}
	return all
}

// withQueue configures the default queue: a store signals a queue also when it is new.
func withQueue(t *testing.T, store queue.Store) {
	t.Helper()
	change := queue.Change{Set: queue.Settings{Max: 100}}
	if err := store.Configure(t.Context(), time.Now(), queue.DefaultQueue, change); err != nil {
		t.Fatal(err)
	}
}

// taken returns the number of signals of each client since the last call.
func taken(clients []*listener) []int {
	n := make([]int, len(clients))
	for i, l := range clients {
		n[i] = l.take()
	}
	return n
}

// TestC11_ATaskSignalsOneClient: each task signals one client, in turn, if that client claims it. So
// 20 nodes that wait do not claim 20 times for a task.
func TestC11_ATaskSignalsOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		withQueue(t, store)
		s := server.New(store, server.Config{})
		defer s.Close()
		clients := listeningTo(t, s, 3)
		time.Sleep(time.Second)
		for turn := range 6 {
			submitted(t, store, 1)
			synctest.Wait()
			got, err := store.Claim(t.Context(), time.Now(), queue.Claim{
				Worker: "w", Kinds: []string{"k"}, Max: 2, Lease: time.Minute,
			})
			if err != nil || len(got.Tasks) != 1 {
				t.Fatalf("%d tasks, %v", len(got.Tasks), err)
			}
			time.Sleep(time.Second)
			done := queue.Outcome{ID: got.Tasks[0].ID, Token: got.Tasks[0].Lease.Token, Kind: queue.OutcomeSuccess}
			if _, err := store.Settle(t.Context(), time.Now(), []queue.Outcome{done}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			want := make([]int, len(clients))
			want[turn%len(clients)] = 1
			if got := taken(clients); !slices.Equal(got, want) {
				t.Errorf("task %d: the clients get %d signals, want %d", turn, got, want)
			}
		}
	})
}

// TestC11_AWaitingTaskSignalsAllClients: while a task waits, more and more clients are signalled: the
// first ones may have no slot for it. That holds for stores that do not know whether tasks wait.
func TestC11_AWaitingTaskSignalsAllClients(t *testing.T) {
	inner := func() queue.Store { return memstore.New(memstore.Config{}) }
	for name, store := range map[string]func() queue.Store{
		"a store that knows": inner, "one that does not": func() queue.Store { return struct{ queue.Store }{inner()} },
	} {
		synctest.Test(t, func(t *testing.T) {
			store := store()
			withQueue(t, store)
			s := server.New(store, server.Config{})
			defer s.Close()
			clients := listeningTo(t, s, 9)
			time.Sleep(time.Second + time.Millisecond/2)
			submitted(t, store, 1)
			total := make([]int, len(clients))
			for i, want := range []int{1, 3, 7, 9, 9} {
				signalled := 0
				for i, n := range taken(clients) {
					total[i] += n
					signalled += total[i]
				}
				if signalled != want || slices.Max(total) > 1 {
					t.Errorf("%s: after %d ms the clients have got %d signals, want %d together", name, i, total, want)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// TestC11_ClientsThatLeaveAreNotSignalled: the others get the signals.
func TestC11_ClientsThatLeaveAreNotSignalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		withQueue(t, store)
		s := server.New(store, server.Config{})
		defer s.Close()
		gone, leave := context.WithCancel(t.Context())
		first := httptest.NewRecorder()
		left := make(chan struct{})
		r := request(http.MethodGet, wire.Ready+"?"+wire.QueryQueue+"=", "").WithContext(gone)
		go func() {
			defer close(left)
			s.ServeHTTP(first, r)
		}()
		synctest.Wait()
		clients := listeningTo(t, s, 2)
		leave()
		<-left
		submitted(t, store, 1)
		if got, want := taken(clients), []int{1, 0}; !slices.Equal(got, want) {
			t.Errorf("the clients get %d signals, want %d", got, want)
		}
	})
}

// The clients together listen to a limited number of queues, and to no more than that if a stream
// has only some of its queues too many. The end of a stream makes room.
func TestC11_QueuesListenedToAreLimited(t *testing.T) {
	const most, each = 16_384, 256
	synctest.Test(t, func(t *testing.T) {
		s := server.New(memstore.New(memstore.Config{}), server.Config{})
		defer s.Close()
		var served sync.WaitGroup
		defer served.Wait()
		stream := func(first int) (answer *httptest.ResponseRecorder, end func()) {
			names := make(url.Values)
			for i := range each {
				names.Add(wire.QueryQueue, strconv.Itoa(first+i))
			}
			ctx, stop := context.WithCancel(t.Context())
			r := request(http.MethodGet, wire.Ready+"?"+names.Encode(), "").WithContext(ctx)
			answer = httptest.NewRecorder()
			served.Go(func() { s.ServeHTTP(answer, r) })
			synctest.Wait()
			return answer, stop
		}
		_, end := stream(0)
		for first := each; first < most; first += each {
			_, stop := stream(first)
			defer stop()
		}
		refused, stop := stream(most - each/2)
		defer stop()
		if refused.Code != http.StatusServiceUnavailable {
			t.Errorf("a stream of too many queues is answered %d", refused.Code)
		}
		_, stop = stream(most - each) // of queues that have listeners
		defer stop()
		end()
		synctest.Wait()
		again, stop := stream(most)
		defer stop()
		if again.Code != http.StatusOK || again.Body.Len() == 0 {
			t.Errorf("after the end of a stream one of new queues is answered %d %s", again.Code, again.Body)
		}
	})
}
