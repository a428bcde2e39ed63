//go:build unix && !linux

package serve

// around returns an error: only Linux has a way to shorten a path.
func around(_, path string) (string, error) { return "", tooLong(path) }
