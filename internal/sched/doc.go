// Package sched is the engine of the scheduler: slots, and the work that waits for them.
//
// The policy, which work starts next, is in internal/backlog: pure, and the same for every
// engine. This package adds what a process needs around it: a lock, goroutines, contexts.
// The root package is the API over it.
//
//	gate.go      the atomic word by which a slot is taken and given back without a lock
//	fifo.go      a queue of many small jobs, in chunks
//	queue.go     what waits: the policy's entries, and a fifo a tier for work without a key
//	entry.go     one piece of work that needs more than its turn: a goroutine that waits, a key
//	engine.go    the Engine: limits, pause, close
//	core.go      its lock, and what is done when it is given up
//	news.go      what has been decided and is acted on then
//	dispatch.go  how free slots are given out
//	take.go      a goroutine that waits for a slot, and gives it back
//	submit.go    a job, from its arrival to its place in the queue
//	worker.go    goroutines that run jobs, one after the other
//	task.go      the context of a function that runs on a slot
//	suspend.go      slots that are lent while their function waits
//	suspended.go   the functions that have lent theirs
//	call.go      one function and its outcome: what a future is made of
//	outcome.go   how it ends, and what waits for that
//	follow.go    a call that continues another
//	move.go      a call that waits gets another tier
//	promise.go   an outcome that is settled by hand
//	group.go     many functions that end together
//	cancellation.go     the end of a context takes its jobs out of the queue
//	backpressure.go      submitters that wait for room in a bounded queue
//	shared.go    slots that are shared with other processes or hosts
//	idle.go      calls that wait until nothing is queued or runs
//	holders.go   the work that has slots, where that is kept
//	report.go    what waits, and why
//	forecast.go  how long work will wait,
//	pace.go      by how fast entries have started,
//	jobs.go      and by how long functions run
//	stamps.go    times of arrival
//	combiner.go      what is left for the lock's holder by goroutines that find it taken
//	lock.go      the mutex
package sched
