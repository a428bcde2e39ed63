package clock

import "time"

// ReadAfter is Read when the machine has been suspended for a time since it was started.
func (r *Remote) ReadAfter(suspended time.Duration, shown, sent, received time.Time) {
	r.read(shown, sent, received, suspended)
}

// Suspended returns for how long the machine has been suspended.
func Suspended() time.Duration { return suspended() }
