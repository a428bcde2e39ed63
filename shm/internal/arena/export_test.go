//go:build linux

package arena

import "time"

// WhileReplaced calls f again while it returns ErrReplaced.
func WhileReplaced(patience time.Duration, f func(left time.Duration) error) error {
	return whileReplaced(patience, f)
}

// ErrReplaced says that the file was deleted while it was opened.
var ErrReplaced = errReplaced

// HeldBefore asks for a lock before the file's beginning, which the kernel refuses.
func (a *Arena) HeldBefore() bool { return a.anyHeld(-locksAt-1, 1) }

// MakePrivateAt makes a directory as that of this user's files.
func MakePrivateAt(dir string) error { return makePrivate(dir) }

// NoRoom is what becomes of an error of setting room aside for a file.
func NoRoom(path string, err error) error { return (&Arena{path: path}).noRoom(err) }

// Mistake has this process take the mapping of one file for that of another, as if
// both had the same number.
func Mistake(one, other *Arena) {
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	mappings.all[other.id] = mappings.all[one.id]
}
