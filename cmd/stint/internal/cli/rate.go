package cli

import (
	"fmt"
	"strconv"
	"strings"

	stint "github.com/stintgo/stint"
)

// parseRate reads a number of starts per second: 5/s, 100/m, 0.5/s, 1/h.
func parseRate(text string) (float64, error) {
	number, unit, ok := strings.Cut(text, "/")
	seconds := map[string]float64{"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || seconds == 0 {
		return 0, fmt.Errorf("--rate %q: give a number and a unit of time, as in 5/s, 100/m or 1/h", text)
	}
	rate := n / seconds
	if err := (stint.LimiterConfig{}).Validate(rate); err != nil {
		return 0, fmt.Errorf("--rate %q: %w", text, err)
	}
	return rate, nil
}
