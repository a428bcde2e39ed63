package run

import (
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/proc"
)

// ExpireAfterEnd reports whether a process counts as timed out whose time is up
// after it has ended, but before anybody has noticed the end.
func ExpireAfterEnd(p *proc.Process) (timedOut bool) {
	t := startTimeout(p, time.Hour, time.Hour)
	p.Wait(func() {
		t.expire()
		timedOut = t.finish()
	}, nil)
	return timedOut
}
