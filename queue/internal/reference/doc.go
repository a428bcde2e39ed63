// Package reference is the rules of a queue, written to be obviously right: the tasks are
// in a list, and every decision looks at all of them. It is the reference model of the
// tests. Package storetest compares stores with its [Store] on random calls, and proves
// its suite on it; package simulation applies its [Rules] to what real processes do, and
// adds what no single store sees: crashes, concurrency and clocks.
//
// Rules reads no clock, makes no calls and takes no lock. The cost of a decision is linear
// or quadratic in the number of tasks.
//
// # Parts
//
// The rules, which methods with an upper-case name apply:
//
//   - rules.go: Rules, the parts together
//   - task.go: the transitions of one task: attempts, crashes, orders, leases, clocks set back
//   - tasks.go: the tasks in the order of their submission, and their Uniques
//   - predecessors.go: tasks that wait for others: After, AfterAny, batches and groups
//   - submissions.go: which new tasks are accepted, and their first states
//   - settings.go: what programs and operators set, and what is in force of it
//   - rates.go: limits on starts per second
//   - limits.go: holds by pauses, suspects and limits; which tasks a claim may start
//   - schedules.go: versions of schedules
//
// The store that follows them:
//
//   - store.go: Config, Store, the lock, Close
//   - opening.go: the end of a process, and the first call after it
//   - calls_work.go: the calls of submitters and workers
//   - calls_admin.go: the calls of operators that change something
//   - calls_read.go: the calls that change nothing
//   - validate.go: checks of arguments
//   - transitions.go: tasks move from state to state, with steps, events and counts
//   - commands.go: commands and edits
//   - order.go: tiers, caps, fairness of keys, and the starvation guard
//   - total.go: slots of the total of all queues that are reserved for a queue
//   - follower.go: choices of another store where the contract leaves one
//   - retention.go: how long finished tasks are kept
//   - workers.go: workers and their heartbeats
//   - listeners.go: signals of new tasks
//   - watchers.go: events for the callers of Watch
//   - finder.go: filters, pages, and tasks as callers see them
//   - reasons.go: why a task waits
//   - stats.go: counts
package reference
