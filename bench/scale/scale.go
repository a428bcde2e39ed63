// Package scale measures what very many pending tasks cost: the memory of the process, the
// time until a store with them is open, and how fast others are worked on while they wait;
// in a directory, on PostgreSQL and on Redis.
//
// Each phase is a process of its own, so that its memory is that of the phase.
package scale

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/stintgo/stint/internal/command"

	"github.com/stintgo/stint/bench/disk"
	"github.com/stintgo/stint/bench/measure"
)

// Default is how many tasks are pending unless the caller sets a number. Tiny is the
// maximum of a tiny pass.
const (
	Default = 10_000_000
	Tiny    = 20_000
)

// worked is how many tasks' lives are measured.
const worked = 60_000

// The readings, which the phases name in the same way.
const (
	rate    = "rate"        // tasks per second
	opening = "opening"     // nanoseconds
	memory  = "memory"      // bytes that are resident when it is filled or open
	peak    = "peak memory" // the most bytes that ever were
)

// Tasks is a directory with pending tasks, and where others can be.
type Tasks struct {
	dir     string
	phase   string // the program
	pending int

	filling sync.Once
	filled  measure.Values
	err     error
}

// Prepare builds the phases into dir. The directory with the tasks is filled by
// the first subject that wants it.
func Prepare(dir string, pending int) (*Tasks, error) {
	if pending < 1 {
		return nil, fmt.Errorf("%d pending tasks; at least 1", pending)
	}
	t := &Tasks{dir: dir, phase: filepath.Join(dir, "phase"), pending: pending}
	_, err := command.Run("", nil, "go", "build", "-o", t.phase, "github.com/stintgo/stint/bench/scale/phase")
	return t, err
}

// Cases are the rows of this suite.
func (t *Tasks) Cases() []measure.Case {
	return []measure.Case{t.fill(), t.work(), t.postgres(), t.redis(), t.day()}
}

// fill is measured once, whatever the rounds are: all of them have the same
// figures.
func (t *Tasks) fill() measure.Case {
	const ours = "stint filestore (synced)"
	return measure.Case{
		Name:     fmt.Sprintf("submit %d tasks that stay pending, batches of 1000", t.pending),
		Ours:     ours,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}, {Name: memory, Unit: "B"}, {Name: peak, Unit: "B"}},
		Goals:    []string{"peak memory ≤ 2 GiB"},
		Subjects: []measure.Subject{{Name: ours, Probe: t.filledOnce}},
	}
}

// work opens the directory and works: as many tasks are submitted as are done,
// so those that were there are the next to start, and as many stay pending.
func (t *Tasks) work() measure.Case {
	const full, empty = "with the pending tasks", "with an empty queue"
	return measure.Case{
		Name: fmt.Sprintf("submit, claim, run, settle: 64 callers, 64 workers, %d pending", t.pending),
		Ours: full,
		Readings: []measure.Reading{
			{Name: rate, Unit: "/s"},
			{Name: opening, Unit: "ns"},
			{Name: memory, Unit: "B"},
			{Name: peak, Unit: "B"},
		},
		Goals: []string{"rate ≥ 0.8× " + empty, "opening ≤ 15 s", "peak memory ≤ 2 GiB"},
		Subjects: []measure.Subject{
			{Name: full, Probe: t.workFull},
			{Name: empty, Probe: t.workEmpty},
		},
	}
}

func (t *Tasks) pendingDir() string { return filepath.Join(t.dir, "pending") }

func (t *Tasks) filledOnce(st *measure.Stage) (measure.Values, error) {
	t.filling.Do(func() {
		if t.err = disk.CheckReal(t.dir); t.err != nil && !st.Once {
			return
		}
		t.filled, t.err = t.run(st, "-store", t.pendingDir(), "-fill", strconv.Itoa(t.pending))
	})
	return t.filled, t.err
}

func (t *Tasks) workFull(st *measure.Stage) (measure.Values, error) {
	if _, err := t.filledOnce(st); err != nil {
		return nil, err
	}
	return t.run(st, "-store", t.pendingDir(), "-work", strconv.Itoa(st.Size(worked)))
}

func (t *Tasks) workEmpty(st *measure.Stage) (measure.Values, error) {
	dir, err := os.MkdirTemp(t.dir, "empty-")
	if err != nil {
		return nil, err
	}
	st.Cleanup(func() { _ = os.RemoveAll(dir) })
	return t.run(st, "-store", dir, "-work", strconv.Itoa(st.Size(worked)))
}

// run runs a phase, when all that others have written is on the disk.
func (t *Tasks) run(st *measure.Stage, args ...string) (measure.Values, error) {
	if !st.Once {
		disk.Settle()
	}
	text, err := command.Run("", nil, t.phase, args...)
	if err != nil {
		return nil, err
	}
	var found measure.Values
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		return nil, fmt.Errorf("the phase %v says %q: %w", args, text, err)
	}
	return found, nil
}
