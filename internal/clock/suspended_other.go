//go:build !linux

package clock

import "time"

// suspended returns how long the machine has been suspended since it was started; 0 where that is not
// known.
func suspended() time.Duration { return 0 }
