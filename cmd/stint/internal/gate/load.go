package gate

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Load returns a check that is true while the load is below most. read returns the load,
// [ReadLoad] that of the machine. young returns the number of running jobs that were
// started so recently that the load average, a mean over a minute, does not include them
// yet: without them a whole batch would start on an idle machine before the load of the
// first job shows.
func Load(most float64, read func() (float64, error), young func() int) Check {
	return func() (bool, error) {
		load, err := read()
		return load+float64(young()) < most, err
	}
}

// ReadLoad returns the load average over a minute.
func ReadLoad() (float64, error) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, fmt.Errorf("--load needs Linux's /proc: %w", err)
	}
	return parseLoad(string(text))
}

func parseLoad(text string) (float64, error) {
	first, _, _ := strings.Cut(text, " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/loadavg: %w", err)
	}
	return load, nil
}
