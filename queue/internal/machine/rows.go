package machine

// Rows is where a machine keeps what must survive: an ordered map of bytes.
// There are four calls, so that a store is little more than them.
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
	cached *cachedRow
}

// The rows, by what their keys begin with. What follows in the key is written
// behind each; texts of any content end with a zero byte, which names cannot
// contain, and times are nanoseconds since 1970, in eight bytes, big-endian.
const (
	rowTask     = "t" // ID: a task
	rowUnique   = "u" // queue, 0, Unique: the ID
	rowPoison   = "p" // fingerprint, ID: a task that has crashed its workers
	rowSettings = "s" // queue: what is set for it
	rowSchedule = "c" // name: a schedule
	rowKept     = "k" // queue, 0, Unique: the ID of a forgotten task, when it was submitted, until when that answers
	rowCascade  = "f" // number: tasks that are yet to be cancelled, because one before them was forgotten
)
