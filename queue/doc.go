// Package queue runs tasks that must not be lost: a [Store] keeps them until some time
// after they have finished. They are retried when they fail or when their worker dies,
// wait for each other, and have a reason for every wait.
//
//	const SendEmail queue.Kind[Email] = "email"
//
//	q := queue.New(store, queue.Config{})
//	SendEmail.Handle(q, func(ctx context.Context, j *queue.Job[Email]) error {
//		return send(ctx, j.Args)
//	})
//	go q.Run(ctx, stint.New(8, stint.Config{}))
//	receipt, err := SendEmail.Submit(ctx, q, Email{To: "ann@example.com"}, queue.Options{})
//
// The [Options] of a task are its priority, key, FIFO group, start time, deadline,
// predecessors, retries, and a name that makes it unique. A [Kind] submits one task whose
// payload is a Go value. [Kind.Prepare] makes such tasks for [Queue.Submit] and
// [Queue.SubmitBatch], which submit many at once, and [Kind.Spec] the task of a
// [Queue.Schedule], which submits one at each tick of a cron expression. The error that a
// [Handler] returns decides the next state of the task. [Queue.Use] wraps the handlers of
// all kinds.
//
// [Queue.Wait], [Queue.Get], [Queue.Find], [Queue.Events] and [Queue.Why] read tasks, and
// [Queue.Dead] reads dead letters. [Queue.Pause], [Queue.Resume], [Queue.Cancel] and
// [Queue.Retry] change one task, and [Queue.Command] all tasks that a filter finds.
// [Queue.Configure] limits how many tasks of a queue and of a key run, in all processes
// that share the store.
//
// Stores are in packages filestore (a directory), pgstore, redisstore, memstore (for tests)
// and httpstore (the store of another process).
//
// docs/states.md draws the life of a task, and docs/guarantees.md says what is
// promised, what is not, and which test shows it.
package queue

// The files:
//
// Tasks, and what a store has to do:
//
//   - task.go: Spec, Options and Task
//   - state.go: the states of a task
//   - transition.go: triggers, and the table of transitions
//   - order.go: what operators can order
//   - id.go: task IDs, which sort by age
//   - store.go: Store, its calls and their arguments
//   - admin.go: Admin, the part of Store for operators
//   - settings.go: limits of queues, retention, and their changes
//   - schedule.go: schedules and their state
//   - stats.go: the counts of queues
//   - bounds.go: checks of the arguments of a Store
//   - cycle.go: finds batches whose tasks wait for each other
//   - errors.go: the errors of calls
//   - shortage.go: errors that are not the fault of a task
//   - why.go: reasons why a task has not started
//
// A Queue, for programs that submit and manage tasks:
//
//   - queue.go: Queue, New, Why, Stats
//   - config.go: Config and its defaults
//   - kind.go: Kind, which ties a kind to the Go type of its payload
//   - submit.go: Submit, SubmitBatch, Prepare
//   - command.go: Command, Pause, Resume, Cancel, Retry
//   - find.go: Get, Find, Count
//   - wait.go: Wait
//   - events.go: Events
//   - dead.go: dead letters
//   - schedules.go: Schedule, Unschedule and the other calls about schedules
//   - predecessors.go: the tasks that a task ran after
//   - result.go: the Go value of a result
//   - clock.go: the time of day
//
// A worker, which is a session of Run:
//
//   - run.go: Run, Halt and the end of a session
//   - session.go: the state of a session, its loops, and the names of the Runs of a queue
//   - handle.go: handlers with their middleware, and the errors by which they choose the next state
//   - dispatcher.go: claims tasks of one queue when slots are free
//   - claimsize.go: how many tasks a claim asks for
//   - runner.go: runs the handlers of claimed tasks on slots
//   - attempt.go: Attempt, a task while its handler runs
//   - stoppable.go: the context of an attempt
//   - outcome.go: the outcome that an error of a handler means
//   - settler.go: writes the outcomes of each queue, many at once
//   - heartbeats.go: extends leases, and receives orders
//   - leases.go: the leases of a session; ends attempts whose leases have expired
//   - maintenance.go: calls Maintain at the time that the store asks for
//   - ticker.go: submits the tasks of schedules
//   - timetable.go: the times of a schedule
//   - hooks.go: the hooks of Config
