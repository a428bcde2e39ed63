// Package stint decides how much of a program runs at once, and what goes
// first.
//
// A [Scheduler] admits work to a number of slots: by seven priorities with
// caps and a starvation guard, by key (tenant, host, account) with limits and
// fair shares, and first come first served within a key. Work is a function
// given to [Run], [Go], a [Group] or [Map], or any code between Acquire and
// the Release of its [Permit]. A [Limiter] admits tokens at a rate, by the
// same priorities. The priority travels in the context: see [WithPriority].
//
// Three promises hold throughout:
//   - A slot cannot leak: it is released if a function panics or exits its
//     goroutine, and a caller whose context ends while it waits holds none.
//   - Every wait has a reason: see [Scheduler.Why] and [Future.Why].
//   - Decisions are deterministic: the same order of events gives the same
//     order of starts.
//
// The package depends on the standard library only.
package stint

// A Scheduler:
//
//   - scheduler.go: Scheduler, New, Acquire, and changes of a scheduler while it runs
//   - config.go: Config and Caps, and their checks
//   - priority.go: Priority, and how the context carries it
//   - permit.go: Permit
//   - run.go: Run and RunWith
//   - close.go: Drain, WaitIdle, Close
//   - slots.go: Slots, by which a scheduler shares slots with other processes
//   - errors.go: the errors of calls
//   - clock.go: the time of day
//
// Functions that run later:
//
//   - future.go: Future, Go and TryGo
//   - with.go: GoWith: Go with an argument and without a closure
//   - then.go: Then and Catch
//   - promise.go: Promise, a future that is settled by hand
//   - group.go: Group
//   - map.go: Map and MapUnordered
//   - mapping.go: one range over a Map
//
// What a scheduler answers:
//
//   - why.go: Reason and its codes
//   - explain.go: Why, Waiting, and the estimate of a wait
//   - held.go: the work that has slots
//   - stats.go: Stats
//
// A Limiter:
//
//   - limiter.go: Limiter, NewLimiter, Wait, Try and Delay
//   - limiter_core.go: takes tokens that are available
//   - limiter_wait.go: waits for tokens
//   - limiter_keys.go: the rates of keys
//   - limiter_sweep.go: forgets keys that are full
//   - limiter_shared.go: Bucket, by which a limiter shares a rate with other processes
//   - limiter_live.go: Stats, and changes of the rate and the capacity
//   - limiter_explain.go: Why and Waiting
//   - limiter_parse.go: ParseRate
//   - stream.go: what a stream pays for at once
//   - stream_reader.go: Reader
//   - stream_writer.go: Writer
