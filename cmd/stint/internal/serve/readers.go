package serve

import (
	"sync"

	"github.com/stintgo/stint/queue"
)

// readers are the clients that follow the logs of tasks. The zero value is ready to use,
// and safe for concurrent use.
type readers struct {
	mu sync.Mutex
	of map[queue.ID]map[chan struct{}]struct{}
}

// add returns a channel that receives when the log of a task may have grown, until leave
// is called. The channel buffers one signal.
func (r *readers) add(id queue.ID) (news <-chan struct{}, leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[queue.ID]map[chan struct{}]struct{})
	}
	if r.of[id] == nil {
		r.of[id] = make(map[chan struct{}]struct{})
	}
	reader := make(chan struct{}, 1)
	r.of[id][reader] = struct{}{}
	return reader, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(r.of[id], reader); len(r.of[id]) == 0 {
			delete(r.of, id)
		}
	}
}

// wake notifies the readers of a log.
func (r *readers) wake(id queue.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	signal(r.of[id])
}

// wakeAll notifies all readers: events were missed, so any log may have changed.
func (r *readers) wakeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range r.of {
		signal(of)
	}
}

func signal(readers map[chan struct{}]struct{}) {
	for reader := range readers {
		select {
		case reader <- struct{}{}:
		default: // a signal is pending
		}
	}
}
