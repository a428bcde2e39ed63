package machine

import (
	"fmt"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// A row that cannot be read is nobody's business but its own task's. Whatever comes
// upon it in deciding sets the task aside, which is a hold that is found and not
// recorded: nothing has been written, and nothing is lost. All others go on, and the
// row is tried again now and then, because a disk may get well.
//
// Its group and those that come after it wait meanwhile, as for any task that is held.

// damage is why a task is set aside.
type damage struct{ err error }

const (
	// tryAgain is after what time a row is tried again.
	tryAgain = time.Minute
	// mostDamaged is how many tasks a claim sets aside: if no row can be read it is
	// the disk that is to blame.
	mostDamaged = 16
)

// damaged reports whether a task is set aside.
func (t *task) damaged() bool { return t.rare != nil && t.damage != nil }

// damagedReason says why a task does not start whose row cannot be read.
func damagedReason(err error) queue.Reason {
	return queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldDamaged)}, What: err.Error()}
}

// unread is what a command has met that it could not read.
type unread struct {
	n     int
	first error
}

func (u *unread) add(err error) {
	if u.n++; u.first == nil {
		u.first = err
	}
}

// err says so, if there was any.
func (u *unread) err() error {
	if u.n == 0 {
		return nil
	}
	return fmt.Errorf("%d tasks, of which this is the first, were left as they are, and all others done: %w", u.n, u.first)
}
