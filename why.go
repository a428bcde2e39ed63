package stint

import "time"

// Code names what keeps an entry waiting. The codes are the same in Go, JSON,
// the command line and the dashboard.
type Code string

// The reasons for which an in-process entry waits.
const (
	// CodeMax: fewer slots are free than the entry needs.
	CodeMax Code = "max"
	// CodeCap: the running total has reached the cap of the entry's tier.
	CodeCap Code = "cap"
	// CodeKey: as many of the entry's key run as one key may.
	CodeKey Code = "key"
	// CodeRate: the token bucket is short of tokens.
	CodeRate Code = "rate"
	// CodeBehind: others go first.
	CodeBehind Code = "behind"
	// CodeShared: no slot is free, or no token there, where they are shared.
	CodeShared Code = "shared"
	// CodePaused: the scheduler is paused.
	CodePaused Code = "paused"
	// CodeClosed: the scheduler is closed and takes nothing new.
	CodeClosed Code = "closed"
	// CodeQueueFull: the queue is bounded and full; the caller waits for room.
	CodeQueueFull Code = "queue_full"
)

// Reason is one thing that keeps an entry waiting, with what a person needs in
// order to act on it. Which fields are set depends on Code.
type Reason struct {
	Code Code `json:"code"`
	// Limit is the number that the entry ran into: max, cap, key, queue_full.
	Limit int `json:"limit,omitempty"`
	// Running is how much of Limit is taken.
	Running int `json:"running,omitempty"`
	// Weight is how many slots the entry needs at once, where it needs more than one:
	// it waits for max as long as Running plus Weight is above Limit.
	Weight int `json:"weight,omitempty"`
	// Key is the key at its limit.
	Key string `json:"key,omitempty"`
	// Ahead counts the entries that go first, at most, by tier, lowest first.
	// An entry of a lower tier goes first only by the starvation guard, and is
	// not counted.
	Ahead [Tiers]int `json:"ahead,omitzero"`
	// Guard is how many turns away the starvation guard's turn of the entry's
	// tier is.
	Guard int `json:"guard,omitempty"`
	// Tokens is how many tokens the bucket is short of.
	Tokens int64 `json:"tokens,omitempty"`
	// FreeAt is when the bucket will have them, if nobody goes first.
	FreeAt time.Time `json:"free_at,omitzero"`
	// Since is when the scheduler was paused.
	Since time.Time `json:"since,omitzero"`
	// By says who paused it and why, in the words given to Pause; who holds the
	// shared slots; or who waits for shared tokens.
	By string `json:"by,omitempty"`
}
