package reference

import (
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// workerLives is how long a worker counts as alive after its last heartbeat.
const workerLives = time.Minute

// workers is the workers that have sent heartbeats, by name.
type workers map[string]worker

type worker struct {
	queue.Worker
	at time.Time // of the last heartbeat
}

func (w worker) lives(now time.Time) bool { return now.Sub(w.at) < workerLives }

// living returns the workers that are alive, in the order of their names.
func (ws workers) living(now time.Time) (all []queue.Worker) {
	for _, name := range slices.Sorted(maps.Keys(ws)) {
		if w := ws[name]; w.lives(now) {
			all = append(all, w.Worker)
		}
	}
	return all
}

// lack reports whether no live worker handles the kind of a task, and which worker handled
// it last.
func (ws workers) lack(now time.Time, t *Task) (seen queue.Seen, lack bool) {
	for _, w := range ws {
		if !slices.Contains(w.Kinds[t.Queue], t.Kind) {
			continue
		}
		if w.lives(now) {
			return queue.Seen{}, false
		}
		if w.at.After(seen.At) {
			seen = queue.Seen{Worker: w.Name, At: w.at}
		}
	}
	return seen, true
}
