package machine

import (
	"crypto/sha256"
	"fmt"
	"sync/atomic"

	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// fingerprints is the set of poison tasks: dead tasks that have crashed their workers. It
// finds a poison task by the hash of its kind and payload, so that a task with the same
// work becomes Dead when it is submitted, and has a row for each of them. of needs no lock,
// because it hashes the payloads of a whole call; the caller of every other method holds
// the lock of the machine.
type fingerprints struct {
	journal *journal.Journal
	tasks   *tasks

	byWork map[fingerprint]*linkedTasks // poison tasks
	any    atomic.Bool                  // byWork is not empty; written with the lock
	peak   int                          // of byWork, for shrink.Delete
}

// fingerprint identifies the work of a task: a hash of its kind and its payload.
type fingerprint [16]byte

func fingerprintOf(s *queue.Spec) (f fingerprint) {
	h := sha256.New()
	h.Write([]byte(s.Kind))
	h.Write([]byte{0})
	h.Write(s.Payload)
	copy(f[:], h.Sum(nil))
	return f
}

// of returns the fingerprints of the tasks of a call, or nil if there is no poison task.
func (f *fingerprints) of(tasks []queue.NewTask) []fingerprint {
	if !f.any.Load() {
		return nil
	}
	prints := make([]fingerprint, len(tasks))
	for i := range tasks {
		prints[i] = fingerprintOf(&tasks[i].Spec)
	}
	return prints
}

// sameAs returns a poison task with the fingerprint of task i of a call; nil if there is
// none, or if there was no poison task when of was called.
func (f *fingerprints) sameAs(i int, prints []fingerprint) *task {
	if prints == nil || f.byWork[prints[i]] == nil {
		return nil
	}
	return f.byWork[prints[i]].Front().Value.(*task)
}

// add adds a task to the poison tasks.
func (f *fingerprints) add(t *task, row *record.Row) {
	work := fingerprintOf(&row.Spec)
	f.link(t, work)
	f.journal.Set(rowPoison+string(work[:])+string(row.ID[:]), []byte{1}, false)
}

func (f *fingerprints) link(t *task, work fingerprint) {
	same := f.byWork[work]
	if same == nil {
		same = new(linkedTasks)
		f.byWork[work] = same
		f.any.Store(true)
	}
	t.more().poison = &poisoned{work, same.PushBack(t)}
}

// remove removes a task that is retried or forgotten, if it is a poison task.
func (f *fingerprints) remove(t *task) {
	if t.optional == nil || t.poison == nil {
		return
	}
	work := t.poison.work
	f.journal.Set(rowPoison+string(work[:])+string(t.id[:]), nil, false)
	same := f.byWork[work]
	if same.Remove(t.poison.same); same.Len() == 0 {
		shrink.Delete(&f.byWork, &f.peak, work)
		f.any.Store(len(f.byWork) > 0)
	}
	t.poison = nil
}

// load reads the rows. The tasks must be in memory already.
func (f *fingerprints) load() error {
	return f.journal.Stored().Scan(rowPoison, func(key string, _ []byte) error {
		if len(key) != len(fingerprint{})+len(queue.ID{}) {
			return fmt.Errorf("%w: row %q of a task that has crashed its workers", record.ErrCorrupt, key)
		}
		work := fingerprint([]byte(key[:len(fingerprint{})]))
		if t := f.tasks.get(queue.ID([]byte(key[len(work):]))); t != nil {
			f.link(t, work)
		}
		return nil
	})
}
