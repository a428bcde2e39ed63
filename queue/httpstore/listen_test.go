package httpstore_test

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// gone is a server that takes the first request and answers none.
type gone struct{ requests *atomic.Int32 }

func (g gone) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.requests.Add(1) > 1 {
		return nil, errors.New("connection refused")
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestC1_ListenWithoutAServer: a further queue does not have the store ask for
// signals without a pause while the server is away.
func TestC1_ListenWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gone{new(atomic.Int32)}
		s := open(t, "http://localhost", httpstore.Config{Transport: g})
		s.Listen("a")
		synctest.Wait()
		s.Listen("b")
		time.Sleep(time.Minute)
		if n := g.requests.Load(); n < 250 || n > 350 {
			t.Errorf("%d requests in a minute", n)
		}
	})
}

// TestC1_ListenToManyQueues: however many queues a worker has, and however long
// their names are, it hears of each.
func TestC1_ListenToManyQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		store := memstore.New(memstore.Config{})
		n.start(store, server.Config{})
		s := n.open(httpstore.Config{})
		names, signals := make([]string, 1200), make([]<-chan struct{}, 1200)
		for i := range names {
			names[i] = strings.Repeat("ä ", 50) + fmt.Sprint(i)
			signals[i], _ = s.Listen(names[i])
			<-signals[i]
		}
		synctest.Wait()
		var ids queue.IDs
		for _, i := range []int{0, 600, 1199} {
			name, ready := names[i], signals[i]
			for len(ready) > 0 {
				<-ready
			}
			_, err := store.Submit(t.Context(), time.Now(), []queue.NewTask{
				{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "work", Options: queue.Options{Queue: name}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-ready:
			case <-time.After(time.Minute):
				t.Errorf("there is no signal of the queue that ends with %s", name[len(name)-4:])
			}
		}
	})
}

// attended is a store that counts its listeners.
type attended struct {
	queue.Store
	listening atomic.Int32
}

func (a *attended) Listen(name string) (<-chan struct{}, func()) {
	a.listening.Add(1)
	ready, stop := a.Store.Listen(name)
	return ready, func() {
		stop()
		a.listening.Add(-1)
	}
}

// streaming is a server that counts the requests that it has yet to answer in full.
type streaming struct {
	http.Handler
	n atomic.Int32
}

func (s *streaming) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.n.Add(1)
	defer s.n.Add(-1)
	s.Handler.ServeHTTP(w, r)
}

// When the last listener of its queues stops, a stream ends at once, at the client and at
// the server, also if the server is away. Later listeners are signalled as before.
func TestC1_ListenersLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		store := &attended{Store: memstore.New(memstore.Config{})}
		srv := server.New(store, server.Config{})
		front := &streaming{Handler: srv}
		hs := n.up(front)
		s := n.open(httpstore.Config{})
		before := runtime.NumGoroutine()
		for range 3 {
			var stops []func()
			for i := range 600 { // three streams
				for range 2 {
					ready, stop := s.Listen(fmt.Sprint(i))
					if stops = append(stops, stop); len(stops)%2 == 1 {
						<-ready
					}
				}
			}
			synctest.Wait()
			if listening, streams := store.listening.Load(), front.n.Load(); listening != 600 || streams != 3 {
				t.Errorf("of 600 queues the server listens to %d, for %d streams", listening, streams)
			}
			for _, stop := range stops {
				stop()
				stop()
			}
			synctest.Wait()
			if listening, streams := store.listening.Load(), front.n.Load(); listening != 0 || streams != 0 {
				t.Errorf("no client listens, but the server listens to %d queues, for %d streams", listening, streams)
			}
		}
		n.down()
		_, stop := s.Listen("a")
		time.Sleep(time.Hour)
		stop()
		synctest.Wait()
		if more := runtime.NumGoroutine() - before; more > 0 {
			t.Errorf("no client listens, but there are %d goroutines more than before the first listened", more)
		}
		srv.Close()
		_ = hs.Close()
	})
}

// Listeners that have stopped make room for others in a stream.
func TestC1_RoomOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		srv := server.New(memstore.New(memstore.Config{}), server.Config{})
		front := &streaming{Handler: srv}
		hs := n.up(front)
		s := n.open(httpstore.Config{})
		s.Listen("stays")
		for i := range 300 {
			_, stop := s.Listen(strings.Repeat("x", 1000) + fmt.Sprint(i))
			stop()
		}
		ready, _ := s.Listen(strings.Repeat("y", 1000))
		<-ready
		synctest.Wait()
		if streams := front.n.Load(); streams != 1 {
			t.Errorf("two queues take %d streams", streams)
		}
		n.down()
		srv.Close()
		_ = hs.Close()
	})
}
