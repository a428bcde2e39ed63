// Package sched is the engine of the scheduler: slots, and the work that waits for them.
//
// The policy, which work starts next, is in internal/backlog: pure, and the same for every
// engine. This package adds what a process needs around it: a lock, goroutines, contexts.
// The root package is the API over it.
//
//	gate.go          the atomic word by which a slot is taken and released without a lock
//	fifo.go          a queue of work without a key, in chunks
//	queue.go         what waits: the policy's entries, and a fifo per tier for work without a key
//	entry.go         Ask, Job; the entry of a waiting goroutine, and of work that needs more than an item: see needsEntry
//	engine.go        the Engine, from New to Close
//	limits.go        the limits, which may change while work runs, and the pause
//	core.go          the slots of an engine, what waits for them, and the decision which work gets them
//	lock.go          its lock, with the operations that goroutines leave for the holder
//	mutex.go         the mutex of the lock
//	decisions.go     decisions that are acted on when the lock is released
//	dispatch.go      how free slots are given out
//	take.go          goroutines that take slots, wait for them and release them; the admission of an arrival
//	submit.go        a job, from its arrival to its place in the queue
//	worker.go        goroutines that run jobs, one after the other
//	task.go          the context of a function that runs on a slot; functions that their caller runs
//	live.go          the tasks that a forced close cancels
//	suspend.go       slots that are suspended while their function waits
//	suspended.go     the functions with suspended slots
//	resumes.go       the order of those that wait to resume
//	call.go          one function and its outcome: what a future is made of
//	outcome.go       the result of a call, and what waits for it
//	follow.go        a call that continues another
//	move.go          a waiting call gets another tier
//	promise.go       an outcome that is settled by hand
//	group.go         many functions that end together
//	cancellation.go  the end of a context removes its jobs from the queue
//	backpressure.go  submitters that a bounded queue blocks
//	shared.go        slots that are shared with other processes or hosts
//	idle.go          calls that wait until nothing is queued or runs
//	holders.go       the work that has slots, if the engine tracks it; releases of its key and its shared slot
//	report.go        Stats; what waits, and why
//	forecast.go      estimates of waits
//	pace.go          how fast entries have started
//	jobs.go          run times of functions, for estimates
//	stamps.go        reads the clock; the times of arrivals, starts and finishes
//	errors.go        the errors of calls
package sched
