// Package isolate runs tasks in processes of their own, so that a task that crashes,
// hangs or exhausts memory does not harm the worker that runs it.
//
// [Commands] returns a handler for tasks whose payload names a program to run. A
// [Handler] is a Go function that is called in a new process of the same program. Both
// start a process group for each attempt; when the attempt is over, however it ended, no
// process of its group is left. The limits of a [Config] apply to the group as a whole.
//
// A program that uses either must call [Main] first in its main function. Main also makes
// the watcher process possible, which kills all groups if the worker is killed with
// SIGKILL.
//
// # How attempts end
//
// An attempt succeeds if the program exits with status 0, or the function returns nil. An
// error of a function counts as [queue.Handler] says. Every other end fails the attempt
// with an [*ExitError]: another status, a signal from outside or from a fault of the
// process, a limit. Two ends of the process of a function have errors of their own: an
// exit with 0 before the function returns, and bytes of the program's own at descriptor
// 3. A process that kills itself therefore fails an attempt like any other error, and its
// task is dead after MaxAttempts; it does not count as a crash of the worker, because the
// worker survives. A program that cannot be started at all is a permanent failure. If the
// worker lacks a resource that the start needs (descriptors, processes, memory, room for
// the log), the attempt ends with a [queue.Shortage], which does not count as a failure.
//
// When the context of the task ends, the group is ordered to end: a program by SIGTERM, a
// function by the end of its own context. Processes that are left after [Config.Grace]
// get SIGKILL. If the lease is lost, before that order or while the group ends for its
// time limit, they get SIGKILL at once, because another worker may be running the task.
// (A lease that is lost after a pause or a cancel is not noticed before Grace is over.)
// The attempt of a program that was ordered to end has failed whatever its exit status,
// because most programs exit with 0 after SIGTERM. What a function returns counts as
// [queue.Handler] says.
//
// # No sandbox
//
// A process may do everything that its user may. A process that leaves the group is neither
// counted nor killed: one that starts a session of its own (setsid) or makes a group of its
// own (setpgid), as timeout(1) does unless it has the flag --foreground, and a shell after
// set -m for each of its jobs. It may run beside the next attempt.
//
// # Systems
//
// Everything works on Linux. Other Unix systems have neither the memory limit, which
// [Config.Validate] rejects there, nor the watcher process. Elsewhere every attempt fails
// with [errors.ErrUnsupported].
package isolate

// Handlers:
//
//   - config.go: Config and its limits
//   - command.go: Command and Commands, for tasks that run a program
//   - command_unix.go: runs the program of an attempt
//   - handler.go: Handler, for tasks that call a function in a new process
//   - handler_unix.go: runs that process, and exchanges frames with it
//   - main.go: Main, which a program calls first
//   - main_unix.go: the process of a handler, as Main runs it
//   - frame.go: the frames between the worker and the process of a handler
//   - returned.go: the error that a handler returned, as the other process gets it
//
// Process groups:
//
//   - group.go: the processes of an attempt, from their start to their end
//   - grouptable.go: the groups of this process, and the watcher that kills them if it is killed
//   - output.go: what the processes write
//   - exit.go: Exit, how the processes ended, and the error that it means
//   - memory_linux.go: the limit on memory
//   - memory_other.go: the same on other systems: none
//   - shortage_unix.go: failures to start that are not the fault of the task
//   - isolate_other.go: other systems, where there are no groups
