package record

// Fields returns the names of all fields by their numbers, for the test that compares the
// package comment with them.
func Fields() [][]string { return [][]string{fieldNames[:], stepNames[:], labelNames[:]} }
