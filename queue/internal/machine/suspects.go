package machine

import (
	"github.com/stintgo/stint/queue/internal/record"
)

// A suspect is a task whose next crash is its last. All that ran in a process are
// counted as crashed with it, so the innocent come back with the one that is to
// blame; if they went on together they would die together. So of the suspects of a
// queue one runs at a time.
//
// They wait in classes of their own, next to that of their kind, which a claim
// leaves out while one of them runs: nothing looks at those that are held, and
// nobody who is no suspect waits for them.

// suspected reports whether the next crash of the task of a row makes it dead. One
// that has never crashed is not suspected, however few it may.
func suspected(row *record.Row) bool {
	return row.Crashes >= max(attemptsOrDefault(row.MaxCrashes)-1, 1)
}

// isSuspect reports whether a task that is Waiting is suspected.
func (t *task) isSuspect() bool { return t.rare != nil && t.suspect != nil }

// suspect has a task that comes to wait be one of its queue's suspects.
func (l *line) suspect(t *task) { t.more().suspect = l.suspects.PushBack(t) }

// unsuspect has a task that waits no longer be none of them.
func (l *line) unsuspect(t *task) {
	if t.isSuspect() {
		l.suspects.Remove(t.suspect)
		t.suspect = nil
	}
}

// holdsSuspects reports whether suspects of the queue have to wait for one that
// runs.
func (l *line) holdsSuspects() bool { return l.suspectsRun > 0 }
