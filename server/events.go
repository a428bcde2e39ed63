package server

import (
	"encoding/json"
	"sync"

	"github.com/stintgo/stint/queue"
)

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

// line appends the JSON of value and a newline.
func line(text []byte, value any) []byte {
	add, err := json.Marshal(value)
	if err != nil {
		return text // for example a time after the year 9999, which tasks cannot have
	}
	return append(append(text, add...), '\n')
}
