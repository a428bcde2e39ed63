// Package retry runs a function again when it fails. A [Policy] determines how often and
// after which delays, and [Do] makes the attempts. [Config.Do] also calls functions that
// decide which failures are retried, or log them.
//
// A Policy is a value, and its methods are pure: [Policy.Next] computes the next delay from
// the number of the attempt, the delay before it and random bits that the caller gives; it
// does not wait or read a clock. So a durable queue, whose attempts are hours apart and in
// different processes, uses the same code as Do.
//
//	err := retry.Do(ctx, retry.Policy{}, func(ctx context.Context) error {
//		return fetch(ctx, url)
//	})
//
// makes at most three attempts, the second 200 ms after the first has failed and
// the third 400 ms after the second. These delays are exact. Many callers that fail at the
// same moment, because what they call is down, would all come back at the same moment too:
// set Jitter for them. The tasks of a durable queue are such callers, so [TaskPolicy] has
// jitter.
//
// A delay that no Policy gives, such as one that a server's answer names, is the result of
// an error: see [After]. A new rule for delays is a field of Policy, used in Policy.Next,
// with its name in the text form ([Parse]); a new kind of randomness is a [Jitter].
package retry
