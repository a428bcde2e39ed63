package stint

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// ErrRate is wrapped by the errors of [ParseRate].
var ErrRate = errors.New("invalid rate")

// amountTable are the multiples of tokens, in lower case.
var amountTable = map[string]float64{
	"":  1,
	"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
}

var periodTable = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}

// ParseRate reads a rate as people write it, in tokens per second: an amount
// and, after a slash, the time in which it is allowed, a second if that is left
// out. "100/s", "5/m", "1000/hour", "20/1m30s", "10MB/s", "1.5MiB", "2k".
//
// The multiples of an amount are k, M, G and T (of 1000) and Ki, Mi, Gi and Ti
// (of 1024), in any letter case; a B for bytes may follow. The time is s, m, h
// or d, or a duration as [time.ParseDuration] reads it. Space around the parts
// is ignored. The error of anything else, and of a rate that [NewLimiter] would
// not take, wraps [ErrRate] and says what to write.
func ParseRate(text string) (tokensPerSecond float64, err error) {
	amount, period, found := strings.Cut(text, "/")
	tokens, err := parseAmount(strings.TrimSpace(amount))
	if err != nil {
		return 0, fmt.Errorf("%w %q: %w", ErrRate, text, err)
	}
	span := time.Second
	if found {
		if span, err = parsePeriod(strings.TrimSpace(period)); err != nil {
			return 0, fmt.Errorf("%w %q: %w", ErrRate, text, err)
		}
	}
	rate := tokens / span.Seconds()
	if err := bucket.ValidateRate(rate); err != nil {
		return 0, fmt.Errorf("%w %q: %w", ErrRate, text, err)
	}
	return rate, nil
}

func parseAmount(text string) (float64, error) {
	digits := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if digits < 0 {
		digits = len(text)
	}
	number, err := strconv.ParseFloat(text[:digits], 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // a rate of infinity is out of range
		return 0, errors.New("it has to begin with a number, as 100/s, 5/m or 10MB/s do")
	}
	unit := strings.TrimSpace(text[digits:])
	if strings.HasSuffix(unit, "b") {
		return 0, fmt.Errorf("unit %q would be bits: write %sB for bytes", unit, unit[:len(unit)-1])
	}
	factor, ok := amountTable[strings.ToLower(strings.TrimSuffix(unit, "B"))]
	if !ok {
		return 0, fmt.Errorf("unknown unit %q: use k, M, G, T, Ki, Mi, Gi or Ti, and B for bytes if you like", unit)
	}
	return number * factor, nil
}

func parsePeriod(text string) (time.Duration, error) {
	if span, ok := periodTable[strings.ToLower(text)]; ok {
		return span, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil || span <= 0 {
		return 0, fmt.Errorf("unknown time %q after the slash: use s, m, h, d or a duration such as 90s or 500ms", text)
	}
	return span, nil
}
