// Package queue runs tasks that must not be lost: a [Store] keeps them until
// some time after they have finished. They are retried when they fail or when their worker dies, wait for each
// other, and have a reason for every wait.
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
// [Queue.Schedule], which submits one at each tick of a cron expression. The error that a [Handler] returns decides the
// next state of the task. [Queue.Use] wraps the handlers of all kinds.
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
