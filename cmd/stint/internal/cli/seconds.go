package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// seconds is a flag for a duration: 500ms, 1m30s, or a number of seconds, as in sleep(1)
// and timeout(1).
type seconds time.Duration

var _ pflag.Value = (*seconds)(nil)

// secondsVar defines a flag for a duration.
func secondsVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	flags.Var((*seconds)(p), name, usage)
}

// Set parses a duration.
func (s *seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		d, err = time.Duration(n*float64(time.Second)), nil
		if !(math.Abs(n) < math.MaxInt64/float64(time.Second)) { // NaN is not less either
			err = strconv.ErrRange
		}
	}
	if err != nil {
		return errors.New("give a time, as in 500ms, 5s or 1m30s, or a number of seconds")
	}
	*s = seconds(d)
	return nil
}

// notNegative returns an error if the duration of a flag is negative.
func notNegative(flag string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("--%s is negative: give 0 or more", flag)
	}
	return nil
}

// aboveZero returns an error if the duration of a flag is 0 or negative.
func aboveZero(flag string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("--%s must be above 0", flag)
	}
	return nil
}

// String returns the default for the help, which omits "0".
func (s *seconds) String() string {
	if *s == 0 {
		return "0"
	}
	return time.Duration(*s).String()
}

// Type names the kind of value.
func (s *seconds) Type() string { return "duration" }
