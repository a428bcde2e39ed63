package ledger

import (
	"math"
	"time"

	"github.com/stintgo/stint"
)

const tiers = stint.Tiers

// All is the Keep of an account that has nothing to return.
const All = math.MaxInt32

// MaxMax is the largest Max of a limit.
const MaxMax = 1 << 20

// Claim is the part of a message from a node to the ledger that is about one of its accounts.
type Claim struct {
	ID       uint64 `json:"id"` // of the account, on its node
	Limit    string `json:"limit"`
	Max      int    `json:"max"`
	Seen     uint64 `json:"seen"`            // permits that it has received, ever
	Returned uint64 `json:"returned"`        // permits of them that it has returned or lost
	Tier     int    `json:"tier"`            // the highest that waits, from 0
	Need     int    `json:"need"`            // permits that it could use besides those it has, at most Max
	Spare    bool   `json:"spare,omitempty"` // it could use one permit if it is free now

	// For Usage.
	Used    int  `json:"used"`
	Waiting int  `json:"waiting"`
	Ask     bool `json:"ask,omitempty"` // it asks for the usage
}

// repeats reports whether a claim is the one before, as far as decisions depend on it.
func (c Claim) repeats(before Claim) bool {
	before.Waiting, before.Ask = c.Waiting, c.Ask
	return c == before
}

// Order is the answer of the ledger for an account.
type Order struct {
	ID      uint64 `json:"id"`
	Granted uint64 `json:"granted"` // permits that it was granted, ever
	// Keep is how many permits it may have. Those above it are returned when they are not
	// in use.
	Keep int `json:"keep"`
	// Revoked means that this many of the permits granted first are lost, if they were not
	// returned.
	Revoked uint64 `json:"revoked,omitempty"`
}

// Usage is the state of a limit for one of its accounts.
type Usage struct {
	ID      uint64   `json:"id"` // of the account
	Max     int      `json:"max"`
	Holders []Holder `json:"holders"`
}

// Holder is an account in a [Usage].
type Holder struct {
	Name    string `json:"name"` // of the node
	Used    int    `json:"used"`
	Waiting int    `json:"waiting"`
	Own     bool   `json:"own,omitempty"` // the account that has asked
}

// RateClaim is a [Claim] for a token account.
type RateClaim struct {
	ID        uint64  `json:"id"` // of the token account, on its node
	Rate      string  `json:"rate"`
	PerSecond float64 `json:"per_second"`
	Capacity  int64   `json:"capacity"`
	Seen      uint64  `json:"seen"`            // tokens that it has received, ever
	Spent     uint64  `json:"spent"`           // tokens of them that it has spent or dropped
	Returned  uint64  `json:"returned"`        // tokens of them that it has returned
	Refunded  uint64  `json:"refunded"`        // tokens that were spent and refunded later
	Tier      int     `json:"tier"`            // the highest that waits, from 0
	Need      int64   `json:"need"`            // tokens that its first entry needs besides those it has
	Extra     int64   `json:"extra,omitempty"` // tokens that it would use besides, if they are there
	Spare     int64   `json:"spare,omitempty"` // tokens that it could use if they are there now
	Debt      int64   `json:"debt,omitempty"`  // tokens that it takes on credit
	Waiting   int     `json:"waiting"`         // for RateUsage
	Ask       bool    `json:"ask,omitempty"`   // it asks for the usage
}

// RateOrder is an [Order] for a token account.
type RateOrder struct {
	ID      uint64 `json:"id"`
	Granted uint64 `json:"granted"` // tokens that it was granted, ever
	Rival   int    `json:"rival"`   // the highest tier that waits on other nodes, or -1
	// Capacity is that of the rate, the smallest of all nodes; 0 if the leader is of a version that did not send it.
	Capacity int64         `json:"capacity,omitempty"`
	Debt     int64         `json:"-"`              // the end of the debt by the ledger's clock, in ns
	Left     time.Duration `json:"left,omitempty"` // until the end of the debt, in ns
}

// RateUsage is the state of a rate for one of its token accounts.
type RateUsage struct {
	ID      uint64   `json:"id"` // of the token account
	Tokens  int64    `json:"tokens"`
	Waiters []Waiter `json:"waiters,omitempty"`
}

// Waiter is a token account in a [RateUsage].
type Waiter struct {
	Name    string `json:"name"` // of the node
	Tier    int    `json:"tier"`
	Waiting int    `json:"waiting"`
	Own     bool   `json:"own,omitempty"` // the token account that has asked
}
