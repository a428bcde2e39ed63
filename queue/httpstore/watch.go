package httpstore

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// Watch is as [queue.Store] says. It begins when the server has confirmed it. The client
// counts the events that a slow fn misses, so fn does not delay the server. Watch returns
// [queue.ErrUnavailable] when the server cannot be reached, or its connection breaks.
func (s *Store) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	ctx, release := s.bind(ctx)
	defer release()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	events, opened := make(chan queue.Event, s.cfg.WatchBuffer), make(chan struct{}, 1)
	var reading sync.WaitGroup
	var err error
	reading.Go(func() {
		defer close(events)
		defer close(opened) // closed without a value if the watch could not begin
		err = s.readEvents(ctx, func() { opened <- struct{}{} }, events)
	})
	defer reading.Wait()
	defer release() // ends the reader if a callback panics
	select {
	case _, ok := <-opened:
		if ok {
			begun()
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		// No event is delivered after ctx has ended.
		select {
		case e, ok := <-events:
			if !ok {
				return err
			}
			fn(e)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// readEvents passes events on, or counts them as missed if there is no room.
func (s *Store) readEvents(ctx context.Context, opened func(), to chan<- queue.Event) error {
	missed := 0
	return s.lines(ctx, wire.Watch, opened, func(line []byte) error {
		var e queue.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return s.invalidAnswer("%w", err)
		}
		e.Missed += missed
		select {
		case to <- e:
			missed = 0
		default:
			missed = e.Missed + 1
		}
		return nil
	})
}

// refused returns the error of an answer that is not a stream.
func (l *link) refused(res *http.Response) error {
	const enough = 64 << 10
	body, err := io.ReadAll(io.LimitReader(res.Body, enough))
	if err != nil {
		return l.unavailable(err)
	}
	if err := l.decode(&answer{status: res.StatusCode, header: res.Header, body: body}, &struct{}{}); err != nil {
		return err
	}
	return l.unavailable(errors.New("it answers no stream"))
}
