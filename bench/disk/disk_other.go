//go:build !linux

package disk

import "os"

// FileSystem is what kind of file system a directory is on, or "unknown".
func FileSystem(string) string { return "unknown" }

// Settle does nothing here.
func Settle() {}

func syncData(f *os.File) error { return f.Sync() }
