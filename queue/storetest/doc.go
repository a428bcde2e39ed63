// Package storetest is the contract of [queue.Store] as tests. The tests of a store call
// [Run], which runs the cases of the contract, and [Model], which makes random calls and
// compares the store with a simple model. Both take a function that opens an empty
// store. [Check] checks the invariants of the contract on any store at any time.
//
// Where the contract leaves a choice to the store, the suite accepts every choice: for
// example which key of a tier starts next, or which call besides Maintain first notices
// that a lease has expired.
//
// Files:
//
//	storetest.go       Run, and the Harness by which it drives a store
//	trial.go           a case in progress: its clock, crashes and reopening
//	trial_calls.go     the calls of a case, with defaults
//	trial_checks.go    what a case checks about tasks and reasons
//	listener.go        the signals of a queue
//	processor.go       a worker that claims, settles and waits for signals
//
//	check.go           Check: limits, predecessors, counts
//	check_order.go     Check: older tasks start first
//	check_suspects.go  Check: one suspect runs at a time
//	check_task.go      Check: a task agrees with its steps
//
//	submit.go          Submit: validation, all or none, unique tasks, full queues
//	unique.go          UniqueFor: a unique key outlives its task
//	claim.go           Claim: limits, rates, pauses
//	order.go           Claim: the order in which tasks start
//	total.go           limits over all queues
//	total_signal.go    signals when a total makes room
//	signal.go          Listen: signals to waiting workers
//	settle.go          Settle: outcomes, attempts, stale and repeated calls
//	lease.go           Heartbeat, lost leases, tokens, poison tasks
//	suspect.go         suspects run one at a time
//	time.go            delays, deadlines, retention, Maintain
//	clock.go           processes whose clocks differ
//	depend.go          After, batches, groups
//	predecessor.go     AfterAny, cancellation down a chain, retention of predecessors
//	schedule.go        Schedules and Reschedule
//	command.go         Command: orders and their effect in every state
//	command_all.go     Command: the tasks it applies to
//	edit.go            Command: edits of pending tasks
//	find.go            Find and Stats
//	explain.go         Explain: why a task does not run
//	settings.go        Configure and Settings
//	watch.go           Watch: events of every change
//	close.go           Close and cancelled contexts
//	reopen.go          what survives a crash
//	restart.go         leases and orders across a crash or a Close
//	fault.go           a failure at every write
//	concurrent.go      64 clients at once
//	history.go         checks that their answers are linearizable
//
//	model.go           Model: random calls, and the comparison with the model
//	model_calls.go     Model: the random calls
//	model_schedule.go  Model: schedules
//	takeover.go        Model: processes that take a store over in the middle of a call
//	reference.go       NewReference: the model as a store; its rules are in queue/internal/reference
package storetest
