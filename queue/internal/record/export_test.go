package record

// Fields are the names of all fields by their numbers, for the test that holds
// the package's documentation against them.
func Fields() [][]string { return [][]string{fieldNames[:], stepNames[:], labelNames[:]} }
