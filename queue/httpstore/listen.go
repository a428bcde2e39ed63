package httpstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// Listen is as [queue.Store] says. The queues that have listeners share a stream, up to
// the size of a request. The stream is opened again for each further queue, and when the
// server is back. It begins with a signal for every queue, so no signal is lost in
// between.
func (s *Store) Listen(name string) (<-chan struct{}, func()) {
	name = cmp.Or(name, queue.DefaultQueue)
	ready := make(chan struct{}, 1)
	s.listeners.add(name, ready)
	return ready, func() { s.listeners.remove(name, ready) }
}

// listeners are all listeners, and the streams that carry their signals.
type listeners struct {
	link *link

	mu      sync.Mutex // guards the fields below, and the streams
	queues  map[string]*audience
	streams []*stream
	closed  bool
	running sync.WaitGroup
}

// audience is the listeners of one queue.
type audience struct {
	members []chan struct{}
	by      *stream // nil if there will be no signals
}

// stream is a request for the signals of some queues.
type stream struct {
	queues []string
	length int // of their part of the request, in bytes

	life    context.Context //nolint:containedctx // until none of the queues has a listener
	end     context.CancelFunc
	restart context.CancelCauseFunc // nil before it has begun
}

// queryMost is the longest list of the queues of a stream, in bytes: servers accept an
// address of 64 KiB.
const queryMost = 32 << 10

func newListeners(to *link) *listeners {
	return &listeners{link: to, queues: make(map[string]*audience)}
}

// errMore ends a stream when there is another queue to listen to.
var errMore = errors.New("another queue")

// add adds a listener.
func (l *listeners) add(name string, ready chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.queues[name]
	if a == nil {
		a = &audience{}
		l.queues[name] = a
		if !l.closed && utf8.ValidString(name) { // otherwise there is no such queue
			a.by = l.ask(name)
		}
	}
	a.members = append(a.members, ready)
}

// ask adds a queue to a stream. The caller holds the lock.
func (l *listeners) ask(name string) *stream {
	length := len(query(name))
	for _, st := range l.streams {
		if len(st.queues) < wire.QueuesMost && st.length+length <= queryMost {
			st.queues = append(st.queues, name)
			st.length += length
			if st.restart != nil {
				st.restart(errMore)
			}
			return st
		}
	}
	st := &stream{queues: []string{name}, length: length}
	st.life, st.end = context.WithCancel(l.link.life)
	l.streams = append(l.streams, st)
	l.running.Go(func() { l.run(st) })
	return st
}

// query returns the part of a request that names a queue.
func query(name string) string { return "&" + wire.QueryQueue + "=" + url.QueryEscape(name) }

// remove removes a listener, if it is there.
func (l *listeners) remove(name string, ready chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.queues[name]
	if a == nil {
		return
	}
	a.members = slices.DeleteFunc(a.members, func(c chan struct{}) bool { return c == ready })
	if len(a.members) > 0 {
		return
	}
	delete(l.queues, name)
	if a.by != nil {
		l.forget(a.by, name)
	}
}

// forget removes a queue from its stream. A stream that has other queues still asks for
// it until it is opened again: opening it now would signal all of them for nothing.
func (l *listeners) forget(st *stream, name string) {
	st.queues = slices.DeleteFunc(st.queues, func(other string) bool { return other == name })
	st.length -= len(query(name))
	if len(st.queues) == 0 {
		st.end()
		l.streams = slices.DeleteFunc(l.streams, func(other *stream) bool { return other == st })
	}
}

// close waits for the streams, which the end of the store's life has ended.
func (l *listeners) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
}

// run reads the stream until it has no listener. It opens the stream again at once for
// another queue, and after a growing pause if the server is away.
func (l *listeners) run(st *stream) {
	pause := time.NewTimer(longestWait)
	defer pause.Stop()
	for away := firstWait; st.life.Err() == nil; {
		ctx, path := l.begin(st)
		err := l.link.lines(ctx, path, func() { away = firstWait }, l.received)
		if errors.Is(err, errMore) {
			continue
		}
		pause.Reset(away)
		away = min(2*away, longestWait)
		select {
		case <-pause.C:
		case <-st.life.Done():
		}
	}
}

// begin returns the request for the signals of all present queues of a stream, and its
// context.
func (l *listeners) begin(st *stream) (ctx context.Context, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if st.restart != nil {
		st.restart(nil) // the previous request has ended
	}
	ctx, st.restart = context.WithCancelCause(st.life)
	var all strings.Builder
	for _, name := range st.queues {
		all.WriteString(query(name))
	}
	return ctx, wire.Ready + "?" + strings.TrimPrefix(all.String(), "&")
}

// received passes a signal on to the listeners of its queue.
func (l *listeners) received(line []byte) error {
	var signal wire.Signal
	if err := json.Unmarshal(line, &signal); err != nil {
		return l.link.invalidAnswer("%w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.queues[signal.Queue]
	if a == nil {
		return nil // the last listener has left
	}
	for _, ready := range a.members {
		select {
		case ready <- struct{}{}:
		default: // the channel holds a signal
		}
	}
	return nil
}
