//go:build unix && !linux

package watcher

import (
	"errors"
	"os"
	"sync/atomic"
)

// Program is the file of this process, on systems that have one.
const Program = ""

// Watcher watches nothing on this system.
type Watcher struct{ cells []atomic.Int32 }

// Start returns nil, as docs/run.md documents.
func Start(string, string, *os.File, func(error)) *Watcher { return nil }

// Started does nothing.
func (w *Watcher) Started() {}

// Ended reports false: there is no watching process.
func (w *Watcher) Ended() bool { return false }

// Stop does nothing.
func (w *Watcher) Stop() {}

// Main is not called on this system.
func Main([]string) error { return errors.ErrUnsupported }
