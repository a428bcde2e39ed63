// Package watcher ends the jobs of a stint that was killed.
//
// A process that gets SIGKILL, from a person or for want of memory, can do
// nothing any more, and the kernel tells only its direct children. So a second
// process watches: it shares a table of the process groups of all jobs that
// run, and reads a pipe whose only writing end stint holds. The pipe ends when
// stint does, however that happens; what is in the table then is killed.
//
// A job costs two stores to memory and no system call. The process is a second
// instance of the same program, in a session of its own, so that nothing that
// is meant for stint, its group or its terminal reaches it. It exists on Linux
// only.
package watcher

import "sync/atomic"

// Arg is the argument that makes the program the watching process: it then
// calls [Main] and nothing else.
const Arg = "__watch-jobs"

// Cell returns the place in the table for whatever job runs on a slot, from 1.
// As long as it is not 0 it is the number of a process group that is not to
// outlive this process. It is nil if nobody watches, or for slots that no
// machine has threads for.
func (w *Watcher) Cell(slot int) *atomic.Int32 {
	if w == nil || slot > len(w.cells) {
		return nil
	}
	return &w.cells[slot-1]
}
