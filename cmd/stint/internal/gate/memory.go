package gate

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory returns a check that is true while at least least bytes are available. read
// returns the available bytes, [ReadMemory] those of the machine.
func Memory(least int64, read func() (int64, error)) Check {
	return func() (bool, error) {
		free, err := read()
		return free >= least, err
	}
}

// ReadMemory returns the bytes that programs can allocate without swapping, by the
// kernel's estimate.
func ReadMemory() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("--memfree needs Linux's /proc: %w", err)
	}
	return parseMeminfo(string(text))
}

func parseMeminfo(text string) (int64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "MemAvailable:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/meminfo: %w", err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("/proc/meminfo has no MemAvailable: --memfree needs Linux 3.14 or newer")
}
