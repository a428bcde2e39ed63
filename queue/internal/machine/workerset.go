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
	// workerLives is how long a worker counts as alive after its last heartbeat.
	workerLives = time.Minute
	// seenLives is how long the last worker of a kind without tasks is remembered.
	seenLives = 24 * time.Hour
)

// handles is what a worker handles: a kind of a queue.
type handles struct{ queue, kind string }

// workerSet is the workers that have sent a heartbeat lately, and which worker has last
// claimed or announced each kind of each queue. All of it is lost with the process. The
// caller of each method holds the lock of the machine.
type workerSet struct {
	clock  *clock
	queues *queueSet

	byName map[string]*worker // by their names
	swept  int64              // when byName and seen were last swept
	seen   map[handles]queue.Seen
}

// heard registers a worker that sends a heartbeat, with the kinds that it handles.
func (s *workerSet) heard(w queue.Worker) {
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

// live returns the workers that are alive at a time, by their names.
func (s *workerSet) live(at int64) (all []queue.Worker) {
	for _, w := range s.byName {
		if at-w.seen < int64(workerLives) {
			all = append(all, w.Worker)
		}
	}
	slices.SortFunc(all, func(a, b queue.Worker) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// see records that a worker handles kinds of a queue. It does not make the queue.
func (s *workerSet) see(worker, name string, kinds []string) {
	if name == "" {
		name = queue.DefaultQueue
	}
	for _, kind := range kinds {
		s.seen[handles{name, kind}] = queue.Seen{Worker: worker, At: s.clock.time()}
	}
}

// sweep forgets, from time to time, workers that have sent no heartbeat for long: each
// start of a process is a new worker.
func (s *workerSet) sweep() {
	if s.clock.now-s.swept < int64(workerLives) {
		return
	}
	s.swept = s.clock.now
	maps.DeleteFunc(s.byName, func(_ string, w *worker) bool { return s.clock.now-w.seen >= int64(workerLives) })
	maps.DeleteFunc(s.seen, func(h handles, last queue.Seen) bool {
		return s.clock.now-last.At.UnixNano() >= int64(seenLives) && !s.hasKind(h)
	})
}

// hasKind reports whether there have been tasks of a kind since the machine was
// opened.
func (s *workerSet) hasKind(h handles) bool {
	q := s.queues.byName[h.queue]
	if q == nil {
		return false
	}
	_, has := q.kinds[h.kind]
	return has
}

// missing returns the reason that no live worker handles the kind of a task, if that is
// so.
func (s *workerSet) missing(row *record.Row, at int64) (r queue.Reason, none bool) {
	seen, ever := s.seen[handles{row.Queue, row.Kind}]
	if ever && at-seen.At.UnixNano() < int64(workerLives) {
		return r, false
	}
	return queue.Reason{Reason: stint.Reason{Code: queue.CodeNoWorker}, What: row.Kind, LastSeen: seen}, true
}
