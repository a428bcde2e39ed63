// Package machine is the state machine of durable tasks that all stores share. It
// decides in memory, where an entry for each task determines the order of starts, and
// keeps what must survive in rows behind an interface of four methods, [Rows].
//
// Every call is one step under one lock, or a few: a step decides, changes the memory,
// and writes rows to the journal; then, without the lock, the call waits until they are
// durable. So a result that a call has returned survives whatever the rows survive. If
// rows cannot be written, the memory is ahead of them, and the machine accepts no more
// changes: it has to be opened again. Queries are still answered. A step does
// a bounded amount of work, however many tasks depend on what it changes: see scans.go.
//
// The machine reads no clock. A goroutine that it starts ends before its call returns,
// with three exceptions: a call that its caller has left still applies its batch; drain
// visits the tasks that a call has released or cancelled, if there are very many; and
// after an earlier process with a clock that was ahead, correctRest corrects the rows.
// Close waits for all of them.
//
// # Parts
//
// [Machine] has the calls of the store. [TxSubmissions] and [TxOutcomes] are for a store to
// which transactions of callers write tasks and outcomes beside the machine. Each part
// that the three use is a type in a file of its own, with its own state and pointers to other
// parts. A part uses only parts that come before it in parts.go, except for the two functions
// that parts.go names. There is one lock, in steps: unless its comment says otherwise, the
// caller of a part's method holds the lock, and the method takes none.
//
// Calls and steps:
//
//   - machine.go: Config, Machine, Open and Close
//   - calls_work.go: Submit, Claim, Heartbeat, Settle, HasWaiting, Listen and Maintain
//   - calls_admin.go: Command, Configure, PauseQueue, Settings, Schedules, Reschedule
//   - calls_read.go: Find, Explain, Stats, Watch
//   - validate.go: checks of submitted tasks, of edits and of the names in them
//   - parts.go: the parts, and which part uses which
//   - steps.go: the lock, the beginning and the end of a step, and the goroutines drain and correctRest
//   - clock.go: the time of the present step
//   - corrector.go: moves the clock; the first call moves later times in rows back to it, and dates or extends leases
//   - loader.go: reads the rows of tasks in Open, and continues or ends the leases of the previous machine
//   - reorder.go: sorts loaded Waiting tasks by age
//
// Rows and the lease log:
//
//   - rowkeys.go: Rows and Change, which are those of package journal; the keys of rows
//   - moverow.go: the rows of a move to another store, which keep a store from being opened; epochs; kinds of keys
//   - taskrows.go: reads and writes the rows of tasks
//   - prefetch.go: reads the row of a task that starts, and prefetches those that will probably start next
//   - counters.go: ages and tokens, which grow over all epochs
//   - leasestorage.go: LeaseStorage, where the lease log is stored
//   - leaselog.go: records leases, so that the next machine knows them after a crash
//
// The set of tasks and its indexes:
//
//   - task.go: the part of a task that is in memory
//   - tasks.go: all tasks, by number and in the order of their IDs; linked lists of tasks
//   - index.go: a hash table of tasks by ID
//   - ascending.go: a sorted list of tasks by ID
//   - heap.go: a binary heap, for due times and ages
//   - stateindex.go: tasks by state; slots, signals, and the quarantine of unreadable tasks
//   - dependencies.go: the tasks and batches that unfinished tasks wait for
//   - scans.go: visits the tasks that wait for a task or batch, a bounded number in each step
//   - cascades.go: cancels the successors of forgotten tasks
//
// Queues, limits and settings:
//
//   - queueset.go: the queues, by name and number, and their listeners
//   - queuestate.go: one queue: its order, counts, limits and retention
//   - groups.go: the FIFO groups of a queue
//   - suspects.go: tasks that one more crash makes Dead, of which each queue runs one at a time
//   - settingset.go: the settings of queues
//   - layers.go: the layers of settings by programs and by operators, which layer is in force, and their row
//   - rate.go: a limit of starts per second
//   - keyrates.go: the rates of keys within a queue
//   - savedrates.go: saves how much of each rate is spent when the store is closed, and loads it in Open
//   - total.go: the limit of all queues together, and which queue gets a free slot
//   - keytotals.go: the limits of keys in all queues together
//   - slots.go: counts the slots that running tasks take; ends of leases on which a limit depends after a crash
//
// Other sets:
//
//   - uniquenames.go: finds the tasks of unique names; names that stay reserved after their tasks are forgotten
//   - fingerprints.go: poison tasks; a task with the same work becomes Dead when it is submitted
//   - scheduleset.go: the schedules
//   - workerset.go: the workers, and which kinds they handle
//   - watchers.go: events for the callers of Watch
//
// Changes of tasks:
//
//   - transitions.go: moves a task from state to state, in its row and in memory
//   - holds.go: holds, releases or cancels tasks that wait for others; repairs tasks in quarantine
//   - submissions.go: Submit: duplicates, unique names, the limit of pending tasks
//   - txsubmissions.go: TxSubmissions, tasks that transactions of callers have written beside the machine
//   - txoutcomes.go: TxOutcomes, outcomes of attempts that such transactions have written, and fences against them
//   - claimer.go: Claim, and the undo of starts that were not recorded
//   - attempts.go: heartbeats, orders, outcomes, lost leases
//   - commands.go: the commands of operators
//   - maintainer.go: changes that are due: delays, leases, deadlines, retention; removes unused queues and kinds
//
// Queries:
//
//   - views.go: a task as answers show it, with its public state and its holds; how much an answer may take
//   - finder.go: the tasks that match a filter
//   - ending.go: matches the last digits of IDs
//   - reasons.go: why a task has not started
//   - stats.go: counts the tasks of each queue, for Stats
package machine
