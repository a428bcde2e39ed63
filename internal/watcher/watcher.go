// Package watcher ends the jobs of a stint that was killed.
//
// A process that gets SIGKILL, from a person or for want of memory, can do
// nothing any more, and the kernel tells only its direct children. So a second
// process watches: it shares a table of the process groups of all jobs that
// run, and reads a pipe whose only writing end stint holds. The pipe ends when
// stint does, however that happens; what is in the table then is killed.
//
// A job costs three stores to memory and no system call. The process is a second
// instance of the same program, in a session of its own, so that nothing that
// is meant for stint, its group or its terminal reaches it. It exists on Linux
// only.
package watcher

import (
	"math"
	"sync/atomic"
)

// Arg is the argument that makes the program the watching process: it then
// calls [Main] and nothing else.
const Arg = "__watch-jobs"

// Cell returns the place in the table for a job that is about to be started on a
// slot; both are numbered from 1. From now on the job is not to outlive this
// process: it is known by its number until the cell is given the number of its
// process group, which is looked after until it is set to 0. The cell is nil if
// nobody watches, and for slots that no machine has threads for.
func (w *Watcher) Cell(slot, seq int) *atomic.Int32 {
	if w == nil || slot > len(w.cells) || seq > math.MaxInt32 {
		return nil
	}
	cell := &w.cells[slot-1]
	cell.Store(-int32(seq))
	return cell
}
