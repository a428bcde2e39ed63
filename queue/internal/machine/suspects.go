package machine

import (
	"github.com/stintgo/stint/queue/internal/record"
)

// suspects is the suspects of one queue: tasks whose next crash is their last. All tasks
// that ran in a process are counted as crashed with it, so innocent ones come back with
// the one that is to blame; if they ran together again they would die together. So of the
// suspects of a queue one runs at a time. They wait in classes of their own, next to that
// of their kind, which a claim leaves out while one of them runs: no claim looks at held
// suspects, and no other task waits for them. The caller of each method holds the lock of
// the machine.
type suspects struct {
	waiting linkedTasks // that are Waiting
	running int         // at most one, unless an earlier program has left more
	end     uint64      // the journal's mark of the end of the last one's lease
}

// add adds a task that becomes Waiting.
func (s *suspects) add(t *task) { t.more().suspect = s.waiting.PushBack(t) }

// remove removes a task that is Waiting no longer, if it is a suspect.
func (s *suspects) remove(t *task) {
	if t.isSuspect() {
		s.waiting.Remove(t.suspect)
		t.suspect = nil
	}
}

// held reports whether suspects have to wait for one that runs.
func (s *suspects) held() bool { return s.running > 0 }

// suspected reports whether the next crash of the task of a row makes it dead. A task
// that has never crashed is not suspected, however few crashes it may have.
func suspected(row *record.Row) bool {
	return row.Crashes >= max(attemptsOrDefault(row.MaxCrashes)-1, 1)
}

// isSuspect reports whether a task that is Waiting is suspected.
func (t *task) isSuspect() bool { return t.optional != nil && t.suspect != nil }
