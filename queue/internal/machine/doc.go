// Package machine is the state machine of durable tasks that memstore and filestore
// share. It decides in memory, where an entry for each task keeps the order, and keeps
// what must survive in rows behind a seam of four calls, [Rows].
//
// Every call is one step under one lock: it decides, changes the memory, and writes rows
// to the journal; then, without the lock, it waits until they are durable. So a call that
// has been answered survives what the rows survive. If rows cannot be written the memory
// is ahead of them, and nothing more is accepted: the machine has to be opened again. A
// step does a bounded amount of work, however many tasks depend on what it changes: see
// passes.go.
//
// The machine reads no clock. A goroutine that it starts ends with the call that it was
// started for, with three exceptions: the caller left before its rows were written; very
// many tasks go on because of the call, and drain releases them; the clock of an earlier
// process was ahead, and a goroutine corrects the rows.
//
// # Parts
//
// [Machine] is the calls of the store and nothing else. What they do is in parts, a type
// and a file each, that have their own state and pointers to the parts that they use. A
// part uses only parts that come before it in wire.go. There is one lock, in steps:
// unless its comment says otherwise, the methods of a part are called with it held, and
// take no lock.
//
// The calls and what begins and ends them:
//
//   - machine.go: Config, Machine, Open and Close
//   - calls_work.go: Submit, Claim, Heartbeat, Settle, Listen, Maintain, for workers and submitters
//   - calls_admin.go: Command, Configure, PauseQueue, Settings, Schedules, Reschedule
//   - calls_read.go: Find, Explain, Stats, Watch
//   - validate.go: checks of arguments, and the limits of what a task may be
//   - wire.go: which part uses which
//   - steps.go: the lock; the begin and the end of a step; the steps of drain
//   - clock.go: the time of the present step
//   - corrector.go: the time of the first call; times of a clock ahead of it are set back
//   - loader.go: Open reads the rows of tasks, and ends leases of the process before
//   - reorder.go: Open puts waiting tasks into the order of their ages
//
// Rows:
//
//   - rowkeys.go: the keys of rows; the rows themselves are package journal's
//   - taskrows.go: reads and writes the rows of tasks
//   - prefetch.go: reads rows of tasks that are likely to start next
//   - counters.go: ages and tokens, which grow over all epochs
//   - starts.go: Starts, the seam of the lease log
//   - leaselog.go: which leases there are, for the machine that is opened after a crash
//
// The set of tasks and its indexes:
//
//   - task.go: what is in memory of a task
//   - tasks.go: all tasks, by number; lists of tasks
//   - index.go: tasks by ID
//   - ascending.go: tasks in the order of their IDs
//   - heap.go: a heap of what is due at a time
//   - stateindex.go: every task in the place that its state gives it; quarantine of tasks
//     whose row cannot be read
//   - dependencies.go: which tasks and batches unfinished tasks wait for
//   - passes.go: visits to the tasks whose wait may be over, some in each step
//   - cascades.go: cancellations of tasks that come after a forgotten one
//
// Queues and limits:
//
//   - queueset.go: the queues, by name and number
//   - queuestate.go: one queue: its order, counts, and limits in force
//   - groups.go: the FIFO groups of a queue
//   - suspects.go: the suspects of a queue, of which one runs at a time
//   - settingset.go: what is set for queues, and its rows
//   - layers.go: the layers of programs and operators, and what is in force of them
//   - rate.go: a limit on starts
//   - keyrates.go: the rates of keys
//   - total.go: the limit of all queues together, and whose turn a free slot is
//   - keytotals.go: the limits of keys in all queues together
//   - slots.go: what running tasks take of the limits
//
// Other sets:
//
//   - uniquenames.go: unique names of forgotten tasks
//   - fingerprints.go: what the tasks did that have crashed their workers
//   - scheduleset.go: the schedules
//   - workerset.go: the workers, and which kinds they handle
//   - watchers.go: events for those that watch the store
//
// What changes tasks:
//
//   - transitions.go: one task moves from state to state, in its row and in memory
//   - holds.go: tasks are held for what they wait for, and let go on; repair of a task in
//     quarantine
//   - submissions.go: submit
//   - claimer.go: claim, and a claim that is taken back
//   - attempts.go: heartbeats, orders, settle, lost leases
//   - commands.go: what operators ask for
//   - maintainer.go: what is due: delays, leases, deadlines, retention
//
// What answers questions:
//
//   - views.go: a task as the callers of the store see it
//   - finder.go: the tasks that a filter describes
//   - ending.go: a filter by the last digits of IDs
//   - reasons.go: why a task has not started
//   - stats.go: the counts of queues
package machine
