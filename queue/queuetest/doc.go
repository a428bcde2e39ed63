// Package queuetest helps to test programs that use package queue. It makes queues on a
// store in memory, runs their handlers in virtual time, returns tasks with their history,
// and injects errors of the store.
//
// Tests run in a bubble of [testing/synctest], where time advances as soon as every
// goroutine is blocked, so a retry in an hour takes no real time:
//
//	func TestWelcome(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			q := queuetest.New(t, queue.Config{})
//			app := newApp(q) // the program's own: it calls queue.Handle
//			app.signUp("ann@example.com")
//			queuetest.Drain(t, q)
//			task := queuetest.Only(t, q, queue.Filter{Kind: "welcome"})
//			if task.State != queue.Succeeded || task.Failures != 0 {
//				t.Error(queuetest.Life(&task))
//			}
//		})
//	}
//
// IDs and the delays of retries come from a fixed seed, so that they are the same in each
// run of a test that makes the same calls in the same order. See mailer_test.go for more
// examples.
//
//   - [Work] makes one attempt with a handler, as a worker would, and returns the task.
//   - [Drain] runs tasks until no task can make progress by itself.
//   - [Start] runs a queue in the background; [Sleep] advances the time.
//   - [Want], [Only] and [All] return tasks.
//   - [Faulty] wraps a store with a function that can delay or fail its calls.
//
// Functions that take a [testing.TB] call its Fatal methods, so call them only from the
// goroutine of the test.
package queuetest
