package machine

import (
	"github.com/stintgo/stint/queue/internal/record"
)

// suspects is the suspects of one queue: tasks that become Dead at their next crash. When
// a process ends, every task that ran in it counts as crashed, the cause of the crash and
// the others alike; if they ran together again, one crash would make all of them Dead. So
// at most one suspect of a queue runs at a time. Waiting suspects are in backlog classes
// of their own, one for each kind. A claim omits these classes while a suspect runs, so
// held suspects cost a claim nothing and delay no other task. The caller of each method
// holds the lock of the machine.
type suspects struct {
	waiting linkedTasks // suspects that are Waiting
	running int         // suspects that run: at most one, unless an earlier version started more
	end     uint64      // the journal's mark of the last end of a suspect's lease
}

// add adds a suspect that becomes Waiting.
func (s *suspects) add(t *task) { t.more().suspect = s.waiting.PushBack(t) }

// remove removes a task that is no longer Waiting, if it is a suspect.
func (s *suspects) remove(t *task) {
	if t.isSuspect() {
		s.waiting.Remove(t.suspect)
		t.suspect = nil
	}
}

// held reports whether a suspect runs, so that the waiting ones are held.
func (s *suspects) held() bool { return s.running > 0 }

// suspected reports whether the next crash makes the task of a row Dead. A task that has
// never crashed is not suspected, even if MaxCrashes is 1.
func suspected(row *record.Row) bool {
	return row.Crashes >= max(attemptsOrDefault(row.MaxCrashes)-1, 1)
}

// isSuspect reports whether a Waiting task is a suspect.
func (t *task) isSuspect() bool { return t.optional != nil && t.suspect != nil }
