package run

import (
	"fmt"
	"sync"
	"syscall"
)

// stopNote reports the first job that was stopped because it uses the terminal, which
// only one process group can have: without the message, the user would not know why the
// run makes no progress. Other stops are intentional. It is safe for concurrent use.
type stopNote struct {
	say  func(string)
	once sync.Once
}

// stopped is called when a signal has stopped a job.
func (n *stopNote) stopped(j *job, sig syscall.Signal) {
	wants := ""
	switch sig {
	case syscall.SIGTTIN:
		wants = "read from"
	case syscall.SIGTTOU:
		wants = "write to, or change,"
	default:
		return
	}
	n.once.Do(func() {
		n.say(fmt.Sprintf("job %d has stopped and will not go on: it wants to %s the terminal, which jobs cannot use; "+
			"run it with an option not to ask, such as ssh -o BatchMode=yes or sudo -n, "+
			"or give it its answers with --stdin FILE; "+
			"--timeout ends such jobs, Ctrl-C the run", j.Seq, wants))
	})
}
