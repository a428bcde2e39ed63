// Package shm shares limits between the processes of a machine, through memory
// that all of them map. There is no daemon: the first process makes the region,
// and the slots of a process that dies, in whatever way, are released exactly once.
//
//	region, err := shm.Open("fileserver", shm.Geometry{Slots: []int{16}})
//	…
//	defer region.Close()
//	s := stint.New(4, stint.Config{Slots: region.Slots(0)})
//
// Now all processes with such a scheduler together run at most 16 functions at a time, each of
// them at most 4, and higher tiers of one process go before lower tiers of another.
// [Bucket] is a rate that processes share, for a [stint.Limiter], and [Mutex] a lock that
// they share. [Inspect] and [List] return the processes that share a region and what they hold,
// without joining; [Remove] deletes a region that is not in use.
//
// # What is promised
//
//   - Living processes together hold at most as many slots as the limit has.
//   - The slots of a process that has died are available again within about 2 milliseconds
//     while a process waits for them, or when a process next asks. Each further
//     process that dies at the same moment adds a fraction of a millisecond. The exceptions
//     are under Deaths.
//   - Waiters are woken when a slot is released, and do not poll for it.
//   - Processes get at most the tokens of a bucket's rate and capacity, and one debt (see
//     [stint.Limiter]). A process that dies or is stopped does not block the waiters.
//   - A process that is stopped keeps what it holds. A slot that it is granted while it is
//     stopped goes to another process within about 10 milliseconds. If it is in another PID
//     namespace, or too busy to take the slot, that takes about 30.
//
// # Deaths
//
// A process is alive while it holds a lock on the file, which the kernel releases when the
// process has ended. So a PID that is used again, or a PID namespace, makes no difference.
//
// The kernel notifies waiting processes of the end of a process. A slot is available again
// after up to 20 milliseconds, and 10 more for each waiting process that has died too, up
// to 80, if
//
//   - the kernel sends no notification: before Linux 5.3, under a filter of system calls
//     that forbids it, or because the process was in another PID namespace;
//   - the first two of the waiting processes, in the order in which they opened the region,
//     are both stopped, or have all their processors (GOMAXPROCS) in system calls.
//
// A process with much memory takes longer to end, by the time that the kernel needs to
// free it.
//
// # What is needed
//
// Linux; on other systems Open fails with [errors.ErrUnsupported]. All processes must
// belong to one user: other users have no access to the region. They may be in different
// containers, as long as they see the same file and read the same clock: processes of
// another time namespace are refused. Deleting the file by hand does not affect processes
// that have it open, but processes that open it later share nothing with them. Truncating
// it ends every process that uses it with a fault. A process that was forked without exec
// shares the life of its parent: the parent's slots are released when both have ended.
// (Programs that are started by os/exec do not; to keep slots when a process executes
// another program there is [Region.KeepOnExec].)
package shm

// The files:
//
//   - region.go: Region: opens, joins and closes; the host of internal/pool
//   - geometry.go: Geometry, and its form in the file
//   - slots.go: Slots, a limit as a scheduler uses it
//   - bucket.go: Bucket, a rate as a limiter uses it
//   - mutex.go: Mutex
//   - watch.go: the watcher, which sleeps for all waiters of the process and looks for slots of the dead
//   - doorbell.go: notices of ended processes, for the watcher
//   - inspect.go: Inspect, List and Remove, for processes that have not joined
//   - process.go: Process, and which process keeps what another one held
//   - race.go: tells the race detector the order of accesses to a slot
//   - norace.go: the same without the detector: nothing
