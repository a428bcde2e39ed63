// Package shm shares limits between the processes of a machine, through memory
// that all of them see. There is no daemon: whoever comes first makes the region,
// and a process that dies, in whatever way, gives its slots back exactly once.
//
//	region, err := shm.Open("fileserver", shm.Geometry{Slots: []int{16}})
//	…
//	defer region.Close()
//	s := stint.New(4, stint.Config{Slots: region.Slots(0)})
//
// Now all processes with that scheduler together run at most 16 at a time, each
// of them at most 4, and higher tiers of one go before lower tiers of another.
// [Bucket] is a rate that processes share, for a [stint.Limiter], and [Mutex] a
// lock. [Inspect] and [List] tell who shares a region and what they hold, without
// joining; [Remove] deletes one that nobody uses.
//
// # What is promised
//
//   - At most as many slots are held by living processes as there are.
//   - A slot of a process that has died comes back within about 2 milliseconds
//     while somebody waits, or when somebody next asks, whatever else has died with it
//     and whether other processes that wait are stopped; a large process takes longer
//     to die, and each further one that dies at the same time a fraction of a
//     millisecond. It takes up to 20 milliseconds if the kernel does not tell when the
//     process ends, and 10 more for each process that waited and died with it, up to 80:
//     before Linux 5.3, where a filter of system calls forbids it, and for processes of
//     another namespace of processes. So it may if the first two of the processes that
//     wait, in the order in which they have opened the region, are both stopped, or have
//     all their processors (GOMAXPROCS) in system calls. Whether a process lives is a
//     lock that the kernel ends with it, so numbers that are used again, and
//     namespaces, do not matter for that.
//   - Who waits is woken by whoever gives a slot back, and does not poll for it.
//   - Processes get at most the tokens of a bucket's rate and capacity, and one debt
//     (see [stint.Limiter]). Who dies or is stopped does not hold up those who wait.
//   - A process that is stopped keeps what it holds. A slot that it was given
//     while it was stopped goes to another when somebody looks for the dead, within
//     about 10 milliseconds; after about 30 if it cannot be seen to be stopped, as in
//     another namespace of processes, or is too busy to take it.
//
// # What is needed
//
// Linux; on other systems Open fails with [errors.ErrUnsupported]. All processes
// belong to one user: the region is open to nobody else. They may be in different
// containers, as long as they see the same file and read the same clock: one of
// another time namespace is refused. Deleting the file by hand does no harm to those
// that have it open, but whoever comes later shares nothing with them. Shortening it
// ends every process that uses it with a fault. A process that was forked without
// exec shares the life of its parent: the parent's slots come back when both have
// ended. (Programs that are started by os/exec do not; for the program that a process
// turns into there is [Region.KeepOnExec].)
package shm
