// Package shared measures slots that the processes of a machine share: what one
// costs while slots are free, while all callers wait, and when its holder dies.
// The processes are real ones: this program, started anew.
package shared

import (
	"os"

	"github.com/stintgo/stint/internal/dbserver"

	"github.com/stintgo/stint/bench/measure"
)

// The readings. Times of waits are those of half, and of all but one in a
// hundred.
const (
	pairTime   = "time"        // nanoseconds for acquire + release, of all processes together
	rate       = "rate"        // such pairs a second, of all processes together
	leastShare = "least share" // of the process that was served least, in percent of the mean
	half       = "p50"
	most       = "p99"
)

// Systems are what the subjects run on.
type Systems struct{ dir string }

// Prepare sees to it that Redis is installed. Sockets go into dir.
func Prepare(dir string) (*Systems, error) { return &Systems{dir}, dbserver.NeedRedis() }

// Cases are the rows of this suite.
func (s *Systems) Cases() []measure.Case {
	return []measure.Case{
		s.free(), s.freeOfTwo(), s.saturated(2), s.saturated(8),
		s.wake(), s.flood(), s.killed(), s.killedLarge(),
	}
}

// turn is one turn of a subject: what its processes meet at, which is new.
type turn struct {
	*measure.Stage
	dir    string // for sockets
	memory string // for shared memory and files that are locked
	order  order  // what its processes have in common
}

// on returns the measurement of a system that shares a number of slots.
func (s *Systems) on(
	name string, slots int, measured func(*turn) (measure.Values, error),
) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		t := &turn{Stage: st, order: order{System: name, Slots: slots}}
		var err error
		if t.dir, err = t.temporary(s.dir); err != nil {
			return nil, err
		}
		if t.memory, err = t.temporary(memoryDir()); err != nil {
			return nil, err
		}
		if t.order.Address, err = systemTable[name].serve(t); err != nil {
			return nil, err
		}
		return measured(t)
	}
}

// temporary makes a directory that goes when the turn is over.
func (t *turn) temporary(in string) (string, error) {
	dir, err := os.MkdirTemp(in, "stint-bench-")
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	return dir, err
}

// memoryDir is a file system in memory, where there is one.
func memoryDir() string {
	const dir = "/dev/shm"
	if _, err := os.Stat(dir); err != nil {
		return os.TempDir()
	}
	return dir
}
