package journal

// Rows is where a machine keeps what must survive: an ordered map of bytes. There are
// four calls, so that a store is little more than them.
//
// A batch is the changes of one or more complete steps of the machine. If Apply returns
// an error the outcome is unknown: the batch may be there after a restart, as a whole, or
// not. The machine writes nothing more then, and the rows have to be opened again, with a
// larger epoch: a number that grows each time rows are opened, and that begins every
// token and age that the machine gives, so that none is ever given twice.
type Rows interface {
	// Apply makes all changes of a batch or none, in their order, and returns when
	// they survive what the store promises to survive. It is never called by two
	// goroutines at once, and may keep keys and values, but not the batch. After an
	// error nothing is known of the batch, and no other will follow.
	Apply(batch []Change) error
	// Get returns the value of a key, nil if there is none. The caller may keep it,
	// and does not change it.
	Get(key string) ([]byte, error)
	// Scan calls fn for the keys from ≤ key < to in their order, the last one
	// first if down is set, until fn returns false. fn must not keep the value. A
	// batch that is applied meanwhile may be seen or not.
	Scan(from, to string, down bool, fn func(key string, value []byte) bool) error
	// Close is called once, after everything else.
	Close() error
}

// Change sets a key to a value, or removes it if the value is nil.
type Change struct {
	Key    string
	Value  []byte
	cached *entry
}
