//go:build linux

package arena

// Mistake has this process take the mapping of one file for that of another, as if
// both had the same number.
func Mistake(one, other *Arena) {
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	mappings.all[other.id] = mappings.all[one.id]
}
