// Package queue runs tasks that must not be lost: they are kept in a [Store]
// until they have succeeded, are tried again when they fail or when their worker
// dies, wait for each other, and can always say why they wait.
//
//	q := queue.New(store, queue.Config{})
//	queue.Handle(q, "email", func(ctx context.Context, j *queue.Job[Email]) error {
//		return send(ctx, j.Args)
//	})
//	go q.Run(ctx, stint.New(8, stint.Config{}))
//	receipt, err := queue.Submit(ctx, q, "email", Email{To: "ann@example.com"}, queue.Spec{})
//
// What a task is asked to do, and when, is its [Spec]: priority, key, delay,
// deadline, what it comes after, what it must not run twice or beside. Tasks are
// submitted in JSON by the function [Submit], or as bytes, many at once and by
// name, by [Queue.Submit] and [Queue.SubmitBatch]; [Queue.Schedule] submits them at
// the ticks of a cron expression. What a [Handler] returns says what becomes of the
// task, and [Queue.Use] puts something around all of them.
//
// [Queue.Wait], [Queue.Get], [Queue.Find], [Queue.Events] and [Queue.Why] tell about
// tasks. [Queue.Pause], [Queue.Resume], [Queue.Cancel] and [Queue.Retry] change one task,
// and [Queue.Command] all that a filter finds; [Queue.Dead] has those that did not succeed.
// [Queue.Configure] limits what runs of a queue and of a key, in all processes that share
// the store.
//
// docs/states.md draws the life of a task, and docs/guarantees.md says what is
// promised, what is not, and which test shows it.
package queue
