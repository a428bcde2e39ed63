// Package retry runs a function again when it fails: how often and after which
// delays is said by a [Policy], and [Do] does it; [Config.Do] with functions that decide about failures or log
// them.
//
// A Policy is a plain value and pure: [Policy.Next] computes, and neither waits
// nor reads a clock nor draws random numbers of its own. So a durable queue
// whose attempts are hours and processes apart uses the same code as Do.
//
//	err := retry.Do(ctx, retry.Policy{}, func(ctx context.Context) error {
//		return fetch(ctx, url)
//	})
//
// makes at most three attempts, the second 200 ms after the first has failed and
// the third 400 ms after the second. These delays are exact, which is what a
// person expects of one function in one process. Where many callers fail at the
// same moment, because what they call is down, exact delays bring all of them
// back at the same moment too: set Jitter there. The tasks of a durable queue
// are such callers, so [TaskPolicy] is jittered.
package retry
