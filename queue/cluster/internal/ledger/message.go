package ledger

import (
	"math"

	"github.com/stintgo/stint"
)

const tiers = stint.Tiers

// All is the Keep of an account that has nothing to return.
const All = math.MaxInt32

// MaxMax is the largest Max of a limit.
const MaxMax = 1 << 20

// Claim is what a node tells the ledger about one of its accounts.
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
	Ask     bool `json:"ask,omitempty"` // it wants to know the usage
}

// Order is what the ledger tells an account.
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
