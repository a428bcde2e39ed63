// Package shm shares limits between the processes of a machine, through memory
// that all of them map. There is no daemon: the first process makes the region,
// and the slots of a process that dies, in whatever way, are released exactly once.
//
//	region, err := shm.Open("fileserver", shm.Geometry{Slots: []int{16}})
//	…
//	defer region.Close()
//	s := stint.New(4, stint.Config{Slots: region.Slots(0)})
//
// Now all processes with that scheduler together run at most 16 at a time, each
// of them at most 4, and higher tiers of one go before lower tiers of another.
// [Bucket] is a rate that processes share, for a [stint.Limiter], and [Mutex] a
// lock. [Inspect] and [List] return the processes that share a region and what they hold,
// without joining; [Remove] deletes a region that is not in use.
//
// # What is promised
//
//   - Living processes together hold at most as many slots as the limit has.
//   - A slot of a process that has died is available again within about 2 milliseconds
//     while a process waits for it, or when a process next asks, whatever else has died
//     with it and whether other waiting processes are stopped; a large process takes longer
//     to die, and each further one that dies at the same time adds a fraction of a
//     millisecond. It takes up to 20 milliseconds if the kernel does not notify of the end
//     of the process, and 10 more for each waiting process that died with it, up to 80:
//     before Linux 5.3, where a filter of system calls forbids the notification, and for
//     processes of another PID namespace. It also takes that long if the first two of the
//     waiting processes, in the order in which they opened the region, are both stopped, or
//     have all their processors (GOMAXPROCS) in system calls. A process is alive while it
//     holds a file lock, which the kernel releases when the process ends, so neither reused
//     PIDs nor namespaces affect that.
//   - Waiters are woken when a slot is released, and do not poll for it.
//   - Processes get at most the tokens of a bucket's rate and capacity, and one debt (see
//     [stint.Limiter]). A process that dies or is stopped does not block the waiters.
//   - A process that is stopped keeps what it holds. A slot that was granted to it while
//     it was stopped goes to another process at the next look for dead processes, within
//     about 10 milliseconds; after about 30 if it cannot be seen to be stopped, as in
//     another PID namespace, or is too busy to take the slot.
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
