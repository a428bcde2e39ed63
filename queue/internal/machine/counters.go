package machine

import "github.com/stintgo/stint/queue"

// epochShift gives each epoch 2⁴⁰ tokens and as many ages.
const epochShift = 40

// epochBits is the number of bits of an epoch.
const epochBits = 64 - epochShift

// counters gives submissions their ages and leases their tokens. Both begin with the
// epoch, so they grow over all machines on the same rows without a row of their own.
// The caller of each method holds the lock of the machine.
type counters struct {
	epoch  uint32
	seq    uint64 // the last age given, or the largest age in the rows
	tokens uint64 // the number of tokens given in this epoch
}

func newCounters(epoch uint32) counters {
	return counters{epoch: epoch, seq: uint64(epoch) << epochShift} // above the ages of all earlier epochs
}

// nextSeq returns the age of a new task: larger than those of all earlier ones.
func (c *counters) nextSeq() uint64 {
	c.seq++
	return c.seq
}

// reserve makes later ages larger than seq, an age in a row.
func (c *counters) reserve(seq uint64) { c.seq = max(c.seq, seq) }

// nextToken returns the token of a new lease: larger than those of all earlier ones.
func (c *counters) nextToken() queue.Token {
	c.tokens++
	return c.firstToken() + queue.Token(c.tokens)
}

// firstToken returns a token below all tokens of this epoch and above all earlier ones.
func (c *counters) firstToken() queue.Token { return queue.Token(c.epoch) << epochShift }
