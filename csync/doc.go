// Package csync is a synchronisation toolkit in which every wait takes a
// context: [Mutex], [Semaphore], [RWMutex], [Barrier] and [Chan].
//
// What holds for all of them:
//
//   - A call that waits ends when its context ends, and returns
//     [context.Cause] of it. A context that has already ended is refused, also
//     where the call would not have waited.
//   - Waiting is first in, first out; RWMutex has a line for readers and one for
//     writers. What is given back goes straight to the next waiter, and no later caller
//     can take it in between.
//   - When something is handed to a waiter in the same instant in which its
//     context ends, the hand-over counts and the call returns nil. So nothing
//     is ever lost between the two, and nothing is given out twice.
//   - A caller's bug (unlocking what is not locked, a negative weight) panics
//     and leaves the state as it was. All else is an error.
//   - The scoped forms (With) give back when the function returns, panics or
//     calls [runtime.Goexit].
//   - Nothing starts a goroutine or a timer, and nothing needs to be closed. A
//     wait allocates nothing once a lock has been waited for before: each keeps
//     a few of its waiters for the next time.
//   - Nothing may be copied after its first use (go vet finds such copies).
//
// In tests that use testing/synctest, a value whose calls have waited inside a
// bubble belongs to that bubble, like a channel that was made in it.
package csync
