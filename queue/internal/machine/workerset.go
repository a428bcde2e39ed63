package machine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// worker is a worker that has sent a heartbeat.
type worker struct {
	queue.Worker
	seen int64
}

const (
	// workerTTL is how long a worker counts as alive after its last heartbeat.
	workerTTL = time.Minute
	// seenTTL is how long the last worker of a kind without tasks is remembered.
	seenTTL = 24 * time.Hour
)

// handles identifies a kind of a queue.
type handles struct{ queue, kind string }

// workerSet is the workers that have sent a heartbeat recently, and for each kind of each
// queue the last worker that claimed or announced it. It has no rows. The caller of each
// method holds the lock of the machine.
type workerSet struct {
	clock  *clock
	queues *queueSet

	byName map[string]*worker // by their names
	swept  int64              // when byName and seen were last swept
	seen   map[handles]queue.Seen
}

// heartbeat registers a worker that sends a heartbeat, with the kinds that it handles.
func (s *workerSet) heartbeat(w queue.Worker) {
	w.Kinds = maps.Clone(w.Kinds)
	for name, kinds := range w.Kinds {
		w.Kinds[name] = slices.Clone(kinds)
	}
	s.byName[w.Name] = &worker{w, s.clock.now}
	for name, kinds := range w.Kinds {
		s.see(w.Name, name, kinds)
	}
	s.sweep()
}

// live returns the workers that are alive at a time, in the order of their names.
func (s *workerSet) live(at int64) (all []queue.Worker) {
	for _, w := range s.byName {
		if at-w.seen < int64(workerTTL) {
			all = append(all, w.Worker)
		}
	}
	slices.SortFunc(all, func(a, b queue.Worker) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// see records that a worker handles kinds of a queue. It does not add the queue.
func (s *workerSet) see(worker, name string, kinds []string) {
	if name == "" {
		name = queue.DefaultQueue
	}
	for _, kind := range kinds {
		s.seen[handles{name, kind}] = queue.Seen{Worker: worker, At: s.clock.time()}
	}
}

// sweep removes, at most once per workerTTL, workers that have sent no heartbeat for
// workerTTL: each start of a process is a new worker, so they would accumulate.
func (s *workerSet) sweep() {
	if s.clock.now-s.swept < int64(workerTTL) {
		return
	}
	s.swept = s.clock.now
	maps.DeleteFunc(s.byName, func(_ string, w *worker) bool { return s.clock.now-w.seen >= int64(workerTTL) })
	maps.DeleteFunc(s.seen, func(h handles, last queue.Seen) bool {
		return s.clock.now-last.At.UnixNano() >= int64(seenTTL) && !s.hasKind(h)
	})
}

// hasKind reports whether the queue has had tasks of a kind since the machine was opened, or since
// the queue has forgotten its kinds.
func (s *workerSet) hasKind(h handles) bool {
	q := s.queues.byName[h.queue]
	if q == nil {
		return false
	}
	_, has := q.kinds[h.kind]
	return has
}

// handled reports whether a live worker handles a kind of a queue, and which worker handled it
// last.
func (s *workerSet) handled(name, kind string, at int64) (last queue.Seen, handled bool) {
	last, ever := s.seen[handles{name, kind}]
	return last, ever && at-last.At.UnixNano() < int64(workerTTL)
}

// missing returns a reason if no live worker handles the kind of a task.
func (s *workerSet) missing(row *record.Row, at int64) (r queue.Reason, none bool) {
	seen, handled := s.handled(row.Queue, row.Kind, at)
	if handled {
		return r, false
	}
	return queue.Reason{Reason: stint.Reason{Code: queue.CodeNoWorker}, What: row.Kind, LastSeen: seen}, true
}
