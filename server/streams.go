package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// stream serves a request without an end, if there are fewer than [Config.MaxStreams].
func (s *Server) stream(serve func(http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.enter(w) {
			defer s.leave()
			serve(w, r)
		}
	})
}

// enter counts a stream until leave is called. If there are [Config.MaxStreams]
// already, it answers the request and returns false.
func (s *Server) enter(w http.ResponseWriter) bool {
	if s.streams.Add(1) <= int64(s.cfg.MaxStreams) {
		return true
	}
	s.leave()
	s.to.write(w, encoded(nil, fmt.Errorf("%w: %d clients listen, which is the limit", queue.ErrUnavailable,
		s.cfg.MaxStreams)))
	return false
}

func (s *Server) leave() { s.streams.Add(-1) }

// ready streams the signals of queues.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	queues := r.URL.Query()[wire.QueryQueue]
	if len(queues) > wire.QueuesMost {
		s.to.write(w, encoded(nil, fmt.Errorf("%w: a stream of %d queues: at most %d, so open several", queue.ErrInvalid,
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

// watch streams the events of the store. The stream begins when the store's watch has
// begun: from then on the client receives every event.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	now := clock.NowIn(r.Context(), s.cfg.Clock)
	ahead := s.ahead(r, now)
	ctx, stop := context.WithCancel(r.Context())
	events := newEvents()
	begun, ended := make(chan struct{}, 1), make(chan struct{})
	var err error // of the watch, once it has ended
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
	case streams: // the client sees the end of the stream, if it is still there
	case errors.Is(err, context.Canceled):
		s.to.send(w, encoded(nil, fmt.Errorf("%w: the server is shutting down", queue.ErrUnavailable)))
	default:
		s.to.write(w, encoded(nil, err))
	}
}

// pump writes what take returns each time woken receives, and an empty line every
// [wire.Alive], until await ends the stream or the client does not read.
func (s *Server) pump(ctx context.Context, w http.ResponseWriter, woken <-chan struct{}, take func() []byte) {
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", wire.Lines)
	w.Header().Set("Cache-Control", "no-store")
	alive := time.NewTicker(wire.Alive)
	defer alive.Stop()
	for text := []byte("\n"); ; {
		s.to.setDeadline(rc.SetWriteDeadline)
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

// await waits for news or for alive. isNew reports which; goOn is false when the
// client has left, the server is closed, or the Serve of the request ends.
func (s *Server) await(ctx context.Context, news <-chan struct{}, alive <-chan time.Time) (isNew, goOn bool) {
	over, _ := ctx.Value(serving{}).(<-chan struct{}) // nil, which never receives, if no Serve called the handler
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

// line appends the JSON of value and a newline.
func line(text []byte, value any) []byte {
	add, err := json.Marshal(value)
	if err != nil {
		return text // for example a time after the year 9999, which tasks cannot have
	}
	return append(append(text, add...), '\n')
}

// eventsAhead is how many bytes of events are buffered for a client. When they are
// full, the store's own buffer fills, and the store then counts missed events.
const eventsAhead = 256 << 10

// events are the events not yet written to a stream.
type events struct {
	wake chan struct{}

	mu    sync.Mutex
	taken *sync.Cond // signaled when text is taken or over is set
	text  []byte
	over  bool
}

func newEvents() *events {
	e := &events{wake: make(chan struct{}, 1)}
	e.taken = sync.NewCond(&e.mu)
	return e
}

// add appends an event. It blocks while the buffer is full.
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

// end wakes blocked calls of add; events are no longer bounded then.
func (e *events) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	e.taken.Broadcast()
}
