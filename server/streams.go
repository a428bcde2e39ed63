package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// defaultQueue is what a queue without a name is called.
const defaultQueue = "default"

// stream serves what has no end, as long as there is room for one more.
func (s *Server) stream(serve func(http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.enter(w) {
			defer s.leave()
			serve(w, r)
		}
	})
}

// enter takes a place of those who listen, until leave gives it back. If there is
// none it says so.
func (s *Server) enter(w http.ResponseWriter) bool {
	if s.streams.Add(1) <= int64(s.cfg.MaxStreams) {
		return true
	}
	s.leave()
	s.write(w, encoded(nil, fmt.Errorf("%w: %d clients listen, which is as many as may", queue.ErrUnavailable,
		s.cfg.MaxStreams)))
	return false
}

func (s *Server) leave() { s.streams.Add(-1) }

// ready streams the signals of queues.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	queues := r.URL.Query()[wire.QueryQueue]
	if len(queues) > wire.QueuesMost {
		s.write(w, encoded(nil, fmt.Errorf("%w: a stream of %d queues: it may have %d, so open more", queue.ErrInvalid,
			len(queues), wire.QueuesMost)))
		return
	}
	to := newSignals()
	s.hub.listen(to, queues...)
	defer s.hub.leave(to, queues...)
	s.pump(r.Context(), w, to.wake, func() (text []byte) {
		for _, name := range to.take() {
			text = line(text, wire.Signal{Queue: name})
		}
		return text
	})
}

// watch streams the events of the store. The stream begins when the watch has begun:
// from then on the client is told of everything.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	now, err := s.now(r)
	if err != nil {
		s.write(w, encoded(nil, err))
		return
	}
	ahead := s.ahead(r, now)
	ctx, stop := context.WithCancel(r.Context())
	events := newEvents()
	begun, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		defer stop()
		err = s.store.Watch(ctx, func() { wake(begun) }, func(e queue.Event) {
			toClient(&e, ahead)
			events.add(e)
		})
	}()
	streams, _ := s.await(ctx, begun, nil)
	if streams {
		s.pump(ctx, w, events.wake, events.take)
	}
	stop()
	events.end()
	<-ended
	switch {
	case streams: // the client finds the stream ended, if it is still there
	case errors.Is(err, context.Canceled):
		s.send(w, encoded(nil, fmt.Errorf("%w: the server ends", queue.ErrUnavailable)))
	default:
		s.write(w, encoded(nil, err))
	}
}

// pump writes what there is each time it is woken, until somebody does not want to
// go on.
func (s *Server) pump(ctx context.Context, w http.ResponseWriter, woken <-chan struct{}, take func() []byte) {
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", wire.Lines)
	w.Header().Set("Cache-Control", "no-store")
	alive := time.NewTicker(wire.Alive)
	defer alive.Stop()
	for text := []byte("\n"); ; {
		s.hurry(rc.SetWriteDeadline)
		if _, err := w.Write(text); err != nil || rc.Flush() != nil {
			return
		}
		isNew, goOn := s.await(ctx, woken, alive.C)
		if !goOn {
			return
		}
		if text = []byte("\n"); isNew {
			text = take()
		}
	}
}

// await waits for news, or until it is time to go on without. It reports whether
// there are news, and false for goOn when the client, the server or the Serve that
// the client came by does not want to.
func (s *Server) await(ctx context.Context, news <-chan struct{}, alive <-chan time.Time) (isNew, goOn bool) {
	over, _ := ctx.Value(serving{}).(<-chan struct{}) // never, if the request came otherwise
	select {
	case <-news:
		return true, true
	case <-alive:
		return false, true
	case <-ctx.Done():
	case <-over:
	case <-s.closing:
	}
	return false, false
}

// line appends a value and the end of its line.
func line(text []byte, value any) []byte {
	add, err := json.Marshal(value)
	if err != nil {
		return text // such as a time after the year 9999, which no task has
	}
	return append(append(text, add...), '\n')
}

// eventsAhead is how many bytes may wait for a client before the store's own
// buffer fills, and the store counts what is missed.
const eventsAhead = 256 << 10

// events are those that are yet to be written to a stream.
type events struct {
	wake chan struct{}

	mu    sync.Mutex
	taken *sync.Cond // or ended
	text  []byte
	over  bool
}

func newEvents() *events {
	e := &events{wake: make(chan struct{}, 1)}
	e.taken = sync.NewCond(&e.mu)
	return e
}

// add waits until there is room.
func (e *events) add(event queue.Event) {
	e.mu.Lock()
	for len(e.text) >= eventsAhead && !e.over {
		e.taken.Wait()
	}
	e.text = line(e.text, event)
	e.mu.Unlock()
	wake(e.wake)
}

func (e *events) take() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := e.text
	e.text = nil
	e.taken.Broadcast()
	return text
}

// end lets everybody go who waits.
func (e *events) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	e.taken.Broadcast()
}
