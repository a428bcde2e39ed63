//go:build linux

package arena

import "time"

// WhileReplaced calls f again while it returns ErrReplaced.
func WhileReplaced(patience time.Duration, f func(left time.Duration) error) error {
	return whileReplaced(patience, f)
}

// ErrReplaced is errReplaced.
var ErrReplaced = errReplaced

// HeldBefore queries a lock before the file's beginning, which the kernel refuses.
func (a *Arena) HeldBefore() bool { return a.Locks.anyHeld(-locksAt-1, 1) }

// MakePrivateAt makes dir as MakePrivate makes this user's directory.
func MakePrivateAt(dir string) error { return makePrivate(dir) }

// NoRoom returns what Open makes of an allocation error.
func NoRoom(path string, err error) error { return noRoom(path, err) }

// Mistake makes this process take the mapping of one file for that of another, as if
// both had the same inode number.
func Mistake(one, other *Arena) {
	mapped.mu.Lock()
	defer mapped.mu.Unlock()
	mapped.all[other.File.Identity] = mapped.all[one.File.Identity]
}
