package run

import (
	"fmt"
	"syscall"
)

// noteStop reports the first job that was stopped because it uses the terminal, which
// only one process group can have: without the message, the user would not know why the
// run makes no progress. Other stops are intentional.
func (r *Run) noteStop(j *job, sig syscall.Signal) {
	wants := ""
	switch sig {
	case syscall.SIGTTIN:
		wants = "read from"
	case syscall.SIGTTOU:
		wants = "write to, or change,"
	default:
		return
	}
	r.stopNoted.Do(func() {
		r.cfg.Say(fmt.Sprintf("job %d has stopped and will not go on: it wants to %s the terminal, which jobs cannot use; "+
			"run it with an option not to ask, such as ssh -o BatchMode=yes or sudo -n, "+
			"or give it its answers with --stdin FILE; "+
			"--timeout ends such jobs, Ctrl-C the run", j.Seq, wants))
	})
}
