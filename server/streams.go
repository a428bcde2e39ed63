package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// streams serve the requests that last: signals and events, and those that wait for a log. It is
// safe for concurrent use.
type streams struct {
	store queue.Store
	hub   *hub
	now   func() time.Time
	to    *responder

	most    int64
	open    atomic.Int64
	closing chan struct{} // closed when streams must end
	close   sync.Once
}

func newStreams(store queue.Store, cfg *Config, to *responder) *streams {
	return &streams{
		store: store, hub: newHub(store), now: cfg.Clock, to: to, most: int64(cfg.MaxStreams),
		closing: make(chan struct{}),
	}
}

// end ends the streams, and returns when the store is no longer listened to.
func (s *streams) end() {
	s.close.Do(func() { close(s.closing) })
	s.hub.close()
}

// bounded serves a request without an end, if there are fewer than [Config.MaxStreams].
func (s *streams) bounded(serve func(http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.enter(w) {
			defer s.leave()
			serve(w, r)
		}
	})
}

// enter counts a stream until leave is called. If there are [Config.MaxStreams]
// already, it answers the request and returns false.
func (s *streams) enter(w http.ResponseWriter) bool {
	if s.open.Add(1) <= s.most {
		return true
	}
	s.leave()
	s.to.write(w, encoded(nil, fmt.Errorf("%w: %d streams are open, which is the limit", queue.ErrUnavailable, s.most)))
	return false
}

func (s *streams) leave() { s.open.Add(-1) }

// ready streams the signals of queues.
func (s *streams) ready(w http.ResponseWriter, r *http.Request) {
	queues := r.URL.Query()[wire.QueryQueue]
	if len(queues) > wire.QueuesMost {
		s.to.write(w, encoded(nil, fmt.Errorf("%w: a stream of %d queues: at most %d, so open several", queue.ErrInvalid,
			len(queues), wire.QueuesMost)))
		return
	}
	to := newSignals()
	defer s.hub.leave(to, queues...)
	if err := s.hub.listen(to, queues...); err != nil {
		s.to.write(w, encoded(nil, err))
		return
	}
	s.pump(r.Context(), w, to.wake, func() (text []byte) {
		for _, name := range to.take() {
			text = line(text, wire.Signal{Queue: name})
		}
		return text
	})
}

// watch streams the events of the store. The stream begins when the store's watch has
// begun: from then on the client receives every event.
func (s *streams) watch(w http.ResponseWriter, r *http.Request) {
	now := clock.NowIn(r.Context(), s.now)
	ahead := aheadOf(r, now)
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
func (s *streams) pump(ctx context.Context, w http.ResponseWriter, woken <-chan struct{}, take func() []byte) {
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
		_ = rc.SetWriteDeadline(time.Time{}) // over HTTP/2 it would also end a stream that has nothing to write
		isNew, goOn := s.await(ctx, woken, alive.C)
		if !goOn {
			return
		}
		if text = []byte("\n"); isNew {
			text = take()
		}
	}
}

// await waits for woken or for alive. isNew reports which; goOn is false when the
// client has left, the server is closed, or the Serve of the request ends.
func (s *streams) await(ctx context.Context, woken <-chan struct{}, alive <-chan time.Time) (isNew, goOn bool) {
	over, _ := ctx.Value(serving{}).(<-chan struct{}) // nil, which never receives, if no Serve called the handler
	select {
	case <-woken:
		return true, true
	case <-alive:
		return false, true
	case <-ctx.Done():
	case <-over:
	case <-s.closing:
	}
	return false, false
}
