// Package csync is a synchronisation toolkit in which every wait takes a
// context: [Mutex], [Semaphore], [RWMutex], [Barrier] and [Chan].
//
// All of them have these properties:
//
//   - A call that waits ends when its context ends, and returns
//     [context.Cause] of it. A context that has already ended is refused, also
//     where the call would not have waited.
//   - Waiting is first in, first out; RWMutex has one queue for readers and one for
//     writers. A release passes directly to the next waiter, and no later caller can
//     get in between.
//   - When a waiter is granted a lock or a value in the same instant in which its
//     context ends, the grant counts and the call returns nil. So nothing is lost,
//     and nothing is granted twice.
//   - A caller's bug (an Unlock without a Lock, a negative weight) panics and does
//     not change the state. All other failures are errors.
//   - The scoped forms (With) release when the function returns, panics or calls
//     [runtime.Goexit].
//   - Nothing starts a goroutine or a timer, and nothing needs to be closed. A
//     wait allocates nothing once a lock has been waited for before: each keeps
//     a few of its waiters for the next time.
//   - Nothing may be copied after its first use (go vet finds such copies).
//
// In tests that use testing/synctest, a value whose calls have waited inside a
// bubble belongs to that bubble, like a channel that was made in it.
package csync
