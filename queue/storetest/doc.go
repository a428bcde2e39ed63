// Package storetest is the contract of [queue.Store] as tests. A store's own
// tests call [Run] and [Model] with a function that opens an empty store: Run is
// what somebody thought of, Model is random calls, held against a store that is
// obviously right. [Check] holds any store against the invariants of the contract
// at any time.
//
// Where the contract leaves a choice open, the suite leaves it open too: which
// of the keys of a tier goes next, for one, or how soon a lease that ran out is
// noticed by others than Maintain.
package storetest
