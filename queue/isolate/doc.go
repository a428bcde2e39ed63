// Package isolate does the work of tasks in processes of their own, so that a
// task may crash, hang or eat memory without harm to the worker that runs it.
//
// [Commands] is a handler for tasks that say which program to run. A [Handler]
// is a Go function that is called in a new process of the same program. Both
// start a group of processes for each attempt, and when an attempt is over,
// however it ends, no process of its group is left. Limits of a [Config] are for
// the group as a whole.
//
// A program that uses either calls [Main] first in its main function. From there
// a second process watches, and ends all groups if the worker is killed with
// SIGKILL.
//
// # How attempts end
//
// A program that exits with 0 has succeeded, and so has a function that returns
// nil. Everything else is a failed attempt, whose error is an [*ExitError]: another
// status, a signal that was meant for the process or came from its own fault, a
// limit. So a process that kills itself costs an attempt like any other failure;
// it is not counted as a crash of the worker, because the worker lives, and is
// dead after MaxAttempts. A program that cannot be started at all is a permanent
// failure. If the worker lacks what a start needs (descriptors, processes, memory, room
// for the log), the attempt ends with a [queue.Shortage], which is no failure.
//
// When the context of the task ends, the group is told to: a program by SIGTERM,
// a function by the end of its own context. What is left after [Config.Grace]
// gets SIGKILL. If the lease is over it gets that at once, since somebody else
// may be at work on the task: before it is told to end, or while it ends for its
// Time. (That a lease is lost after a pause or a cancel is not seen before the
// Grace is over.) A program that was told to end has not succeeded, whatever its
// status: most exit with 0 then.
//
// # What it is not
//
// It is no sandbox. A process may do all that its user may, and one that makes a
// session of its own (setsid) leaves the group: it is neither counted nor ended.
//
// # Systems
//
// On Linux all of it works. Other Unix systems lack the limit on memory, which
// [Config.Validate] refuses, and the second process. Elsewhere every attempt fails with
// [errors.ErrUnsupported].
package isolate
