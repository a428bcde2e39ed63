//go:build !linux

package isolate

const canLimitMemory = false

// memoryMonitor does nothing: Config.Validate rejects a memory limit on this system.
type memoryMonitor struct{}

var monitor memoryMonitor //nolint:gochecknoglobals // as on Linux

func (memoryMonitor) limit(any, int64) (forget func()) { return func() {} }
