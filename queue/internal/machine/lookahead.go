package machine

// Reading ahead. The oldest of a long backlog start first, and their rows have left
// the memory long ago. Who submits many tasks gives them IDs that ascend, so their
// rows are neighbours: to read a hundred of them in one go takes as long as to look
// up ten. So the rows of those that wait behind one that starts are read with it, as
// long as they are then asked for.

const (
	mostAhead = 128 // rows that are read in one go
	aloneFor  = 32  // rows that are read by themselves before it is tried again
	passedBy  = 4   // tasks that are passed over for each one whose row is wanted
)

// lookahead is how far rows are read ahead, for one tier of a queue. The zero value
// begins with one row.
type lookahead struct {
	read  []uint32 // the tasks whose rows were read last
	alone int      // rows that are to be read by themselves
}

// size is how many rows are to be read now, if so many of those that were read last
// have not been asked for: twice as many as long as half of them were.
func (a *lookahead) size(unused int) int {
	if 2*unused > len(a.read) {
		a.alone = aloneFor
	}
	if a.alone > 0 {
		a.alone--
		return 1
	}
	return min(2*len(a.read), mostAhead)
}
