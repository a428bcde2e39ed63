//go:build unix && !linux

package serve

// around is for systems that have a way around a path that is too long.
func around(_, path string) (string, error) { return "", tooLong(path) }
