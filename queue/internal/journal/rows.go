package journal

import "errors"

// ErrAway is wrapped by errors of Get, ReadKeys and Scan that say nothing about the rows: they cannot
// be reached at present, or belong to another process now.
var ErrAway = errors.New("the rows cannot be read at present")

// Rows is the durable storage of a machine: an ordered map of byte strings. It has only
// four methods, so that a store is easy to implement.
//
// A batch is the changes of one or more complete steps of the machine. If Apply returns
// an error, the outcome is unknown: after a restart the whole batch may be present, or
// none of it. The machine writes nothing more then, and the rows must be opened again
// with a larger epoch. The epoch is a number that grows each time the rows are opened; a
// store that outlives its process counts it. Every token and age that the machine issues
// begins with it, so that none is issued twice. An Apply that can find out the outcome of a
// batch does so instead of returning an error: it returns nil, or tries again.
type Rows interface {
	// Apply makes all changes of a batch, in their order, or none. It returns when they
	// are as durable as the store promises. It is not called concurrently. It may keep
	// keys and values, but not the slice. After an error the state of the batch is
	// unknown, and Apply is not called again.
	Apply(batch []Change) error
	// Get returns the value of a key, nil if there is none. The caller may keep the value
	// but must not change it. The machine is locked meanwhile, so Get must not block for
	// long: if the rows cannot be reached, it returns an error that wraps ErrAway.
	Get(key string) ([]byte, error)
	// Scan calls fn for the keys from ≤ key < to in ascending order, or in descending
	// order if down is set, until fn returns false. fn must not keep the value. A batch
	// that is applied concurrently may be visible as a whole, in part or not at all.
	Scan(from, to string, down bool, fn func(key string, value []byte) bool) error
	// Close is called once, after all other calls.
	Close() error
}

// KeyReader is implemented by Rows that read named keys faster than they scan the range of
// them, for example because they have no order.
type KeyReader interface {
	// ReadKeys returns the values of the first of keys, nil for keys without a value. keys is
	// not empty, ascends, and all keys have one first letter. ReadKeys stops after the value
	// with which the total size reaches most bytes. If the total is less, it may omit trailing
	// keys without a value. The machine is locked meanwhile, as for Get.
	ReadKeys(keys []string, most int) (values [][]byte, err error)
}

// Change sets a key to a value, or removes it if the value is nil.
type Change struct {
	Key    string
	Value  []byte
	cached *entry
}
