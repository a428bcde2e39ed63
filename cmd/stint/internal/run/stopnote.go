package run

import (
	"fmt"
	"syscall"
)

// noteStop tells of a job that has been stopped because it wants the terminal,
// which only one group of processes can have: nobody would see why the run does
// not go on. All such jobs are told of by the first. Other stops are somebody's
// intention.
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
		r.cfg.Say(fmt.Sprintf("job %d has stopped and will not go on: it wants to %s the terminal, which jobs cannot have; "+
			"tell it not to ask, as ssh -o BatchMode=yes or sudo -n do, or give it its answers with --stdin FILE; "+
			"--timeout ends such jobs, Ctrl-C the run", j.Seq, wants))
	})
}
