package gate

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Load is closed while the machine's load average is too high.
type Load struct {
	turn  turn
	most  float64
	read  func() (float64, error)
	young func() int
}

var _ Gate = (*Load)(nil)

// NewLoad returns a gate that is open while the load is below most. read returns the
// load, [ReadLoad] that of the machine. young returns the number of running jobs that
// were started so recently that the load average, a mean over a minute, does not include
// them yet: without them a whole batch would start on an idle machine before the load of
// the first job shows.
func NewLoad(most float64, read func() (float64, error), young func() int) *Load {
	return &Load{turn: newTurn(), most: most, read: read, young: young}
}

// Wait blocks until the load is low enough.
func (l *Load) Wait(ctx context.Context) error {
	if err := l.turn.take(ctx); err != nil {
		return err
	}
	defer l.turn.give()
	return poll(ctx, func() (bool, error) {
		load, err := l.read()
		return load+float64(l.young()) < l.most, err
	})
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
