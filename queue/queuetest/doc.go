// Package queuetest is for the tests of programs that use package queue. It makes
// queues that keep nothing, runs their handlers in virtual time, says what has
// become of tasks, and has the store fail when a test wants it to.
//
// Tests run in a bubble of [testing/synctest], where a minute passes as soon as
// everybody waits for it, so a retry in an hour is tested at once:
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
// IDs and the delays of retries come from a fixed seed, so that they are the same
// each time that a test runs, as far as it does the same in the same order. There
// are more examples in mailer_test.go.
//
//   - [Work] calls one handler once, as a worker would, and says what comes of it.
//   - [Drain] works until nothing more happens by itself.
//   - [Start] runs a queue in the background; [Sleep] lets time pass.
//   - [Want], [Only] and [All] look at tasks.
//   - [Faulty] is a store between which and its callers something goes wrong.
//
// Functions that take a [testing.TB] end the test when they cannot go on, so they
// are called from its own goroutine.
package queuetest
