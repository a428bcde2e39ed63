// Package watcher ends the jobs of a stint that was killed.
//
// A process that gets SIGKILL, from a user or from the kernel when memory is short,
// cannot do anything any more, and the kernel notifies only its direct children. So a
// second process watches: it shares a table of the process groups of all running jobs,
// and reads a pipe whose only writing end stint holds. The pipe ends when stint does,
// however that happens; the watching process then kills the groups in the table.
//
// A job costs three stores to memory and no system call. The process is a second
// instance of the same program, in a session of its own, so that signals
// to stint, its group or its terminal do not reach it. It exists on Linux
// only.
package watcher

import (
	"math"
	"sync/atomic"
)

// Arg is the argument that makes the program the watching process: main must then
// call [Main] and nothing else.
const Arg = "__watch-jobs"

// Cell returns the cell of the table for a job that is about to be started on a slot;
// slot and seq, the job's number, start at 1. From now on the job is ended with this
// process: it is identified by seq until the caller stores the ID of its process group in
// the cell, and then by that until the caller stores 0. The cell is nil if w is nil, and
// for slots beyond maxSlots, which exceeds the number of threads that the runtime allows.
func (w *Watcher) Cell(slot, seq int) *atomic.Int32 {
	if w == nil || slot > len(w.cells) || seq > math.MaxInt32 {
		return nil
	}
	cell := &w.cells[slot-1]
	cell.Store(-int32(seq))
	return cell
}
