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
