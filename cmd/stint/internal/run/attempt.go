package run

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/cmd/stint/internal/template"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/proc"
)

// attempt is one attempt of a job: its files, its process and its result.
type attempt struct {
	job  *job
	fill template.Job // the values for templates: the job and its slot

	stdin    *os.File         // its own, or nil
	redirect *output.Redirect // of standard output, or nil
	capture  *output.Capture  // or nil
	lines    *output.Lines    // or nil
	passed   int64            // bytes that lines has written

	timeout *timeout // of the process, or nil
	started time.Time
	took    time.Duration
	status  proc.Status
	problem string // what went wrong besides the exit status, or empty

	timedOut    bool
	ofProgram   bool // an error is one of its program, not of its files
	interrupted bool // the job ended, or was ended, because the run ends
	faulty      bool // another attempt would fail too
}

// runAttempt runs a job once, and reports whether it will be run again.
func (r *Run) runAttempt(j *job, slot int) (again bool) {
	a := &attempt{job: j, fill: j.Job, started: clock.Now()}
	a.fill.Slot = slot
	j.attempts++
	if r.cfg.Trace {
		r.cfg.Say(j.text)
	}
	p, err := r.launcher.launch(a)
	r.pacer.started()
	if err != nil {
		r.fault(a, err)
	} else {
		r.await(a, p)
	}
	a.took = clock.Now().Sub(a.started)
	a.close()
	return r.settle(a)
}

// await waits for the end of the process.
func (r *Run) await(a *attempt, p *proc.Process) {
	a.status = p.Wait(
		func() { a.timedOut = a.timeout.finish() },
		func(sig syscall.Signal) { r.stopNote.stopped(a.job, sig) })
	a.interrupted = r.registry.remove(p) && !a.timedOut
	if a.status != (proc.Status{}) && r.cfg.Grouping == Ungroup && !r.cfg.Stdout.Set && r.cfg.Sink.ReaderGone() {
		// The job got the signal that stint would have got, had it written the output.
		r.stop.fail(fmt.Errorf("write output: %w", syscall.EPIPE))
		a.interrupted = true
	}
	if a.timedOut {
		a.status.Exit = proc.ExitTimeout
		a.problem = fmt.Sprintf("timed out after %v", r.cfg.Timeout)
	}
}

// fault records an error of this process in its work for the attempt: to open its files, to
// start its program, or to keep its output. Another attempt would meet the error again.
func (r *Run) fault(a *attempt, err error) {
	err = advise(err)
	a.status.Exit = proc.ExitOwn
	if a.ofProgram {
		a.status.Exit = proc.LookStatus(err)
	}
	a.problem = err.Error()
	a.faulty = true
	r.cfg.Say(fmt.Sprintf("job %d: %v", a.job.Seq, err))
	if outOfRoom(err) {
		r.stop.fail(err)     // every other job would fail too,
		a.interrupted = true // and this job has not failed itself
	}
}

// advise adds a remedy to the errors that have one.
func advise(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w; use a smaller -j, or allow more of them (ulimit -n)", err)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%w: use a smaller -n, or pass the input in a file", err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: a script needs a #! line, or --shell", err)
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("%w: the system has too little memory for another process; use a smaller -j", err)
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("%w: the limit on processes is reached; use a smaller -j (see ulimit -u)", err)
	}
	return err
}

// outOfRoom reports whether an error is a shortage of the system, not a fault of one job.
func outOfRoom(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE,
		syscall.EAGAIN, syscall.ENOMEM,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// close closes the files that only the process needed. Its lines are written when close returns,
// so that another attempt writes none between them.
func (a *attempt) close() {
	if a.stdin != nil {
		_ = a.stdin.Close()
	}
	if a.lines != nil {
		a.passed = a.lines.Finish()
	}
}

// discard discards the output that has not been written.
func (a *attempt) discard() {
	a.redirect.Discard()
	a.capture.Close()
}
