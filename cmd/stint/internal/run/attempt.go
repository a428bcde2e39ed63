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

	timeout *timeout // of the process, or nil
	started time.Time
	took    time.Duration
	status  proc.Status
	problem string // what went wrong besides the exit status, or empty

	timedOut    bool
	interrupted bool // the job ended, or was ended, because the run ends
	unstartable bool // another attempt would fail too
}

// runAttempt runs a job once, and reports whether it will be run again.
func (r *Run) runAttempt(j *job, slot int) (again bool) {
	a := &attempt{job: j, fill: j.Job, started: clock.Now()}
	a.fill.Slot = slot
	j.attempts++
	if r.cfg.Trace {
		r.cfg.Say(j.text)
	}
	p, err := r.launch(a)
	r.gates.Started() // the load of the next job's check has this one
	if err != nil {
		r.cannotStart(a, err)
	} else {
		r.await(a, p)
	}
	a.took = clock.Now().Sub(a.started)
	a.close()
	return r.settle(a)
}

// launch opens the files of the job and starts its process.
func (r *Run) launch(a *attempt) (*proc.Process, error) {
	if err := r.openFiles(a); err != nil {
		return nil, err
	}
	var p *proc.Process
	var err error
	p, a.timeout, err = r.registry.launch(a.started, func() (*proc.Process, error) { return r.start(a) })
	if a.lines != nil {
		a.lines.Start()
	}
	return p, err
}

// await waits for the end of the process.
func (r *Run) await(a *attempt, p *proc.Process) {
	a.status = p.Wait(
		func() { a.timedOut = a.timeout.finish() },
		func(sig syscall.Signal) { r.noteStop(a.job, sig) })
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

func (r *Run) start(a *attempt) (*proc.Process, error) {
	argv, err := r.cfg.Command.argv(&a.fill)
	if err != nil {
		return nil, err
	}
	path, err := r.paths.look(&r.cfg.Command, argv)
	if err != nil {
		return nil, err
	}
	stdin, stdout, stderr := r.files(a)
	return proc.Start(&proc.Spec{
		Path: path, Args: argv, Env: r.env.Append(nil, a.fill.Seq, a.fill.Slot),
		Files: [3]*os.File{stdin, stdout, stderr}, Group: r.watcher.Cell(a.fill.Slot, a.fill.Seq),
	})
}

// cannotStart records a failure before the program starts.
func (r *Run) cannotStart(a *attempt, err error) {
	err = advise(err)
	a.status.Exit = proc.LookStatus(err)
	a.problem = err.Error()
	a.unstartable = true
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
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("%w: the limit on processes is reached; use a smaller -j (see ulimit -u)", err)
	}
	return err
}

// outOfRoom reports whether an error is a shortage of the system, not a fault of one job.
func outOfRoom(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// openFiles opens the files that the job reads and writes.
func (r *Run) openFiles(a *attempt) error {
	if r.cfg.Stdin.Set {
		path, err := r.cfg.Stdin.Path.String(&a.fill)
		if err != nil {
			return err
		}
		if a.stdin, err = os.Open(path); err != nil {
			return err
		}
	}
	if r.cfg.Stdout.Set {
		path, err := r.cfg.Stdout.target(&a.fill)
		if err != nil {
			return err
		}
		if a.redirect, err = r.dirs.Redirect(path); err != nil {
			return err
		}
	}
	return r.openOutput(a)
}

func (r *Run) openOutput(a *attempt) (err error) {
	stdout := a.redirect == nil
	switch r.cfg.Grouping {
	case Group:
		a.capture, err = r.cfg.Spool.Capture(stdout, true)
	case Lines:
		tag := ""
		if r.cfg.Tag {
			tag = a.job.tag()
		}
		a.lines, err = r.cfg.Sink.Lines(stdout, true, tag)
	case Ungroup:
	}
	return err
}

// files returns the job's standard input, output and error.
func (r *Run) files(a *attempt) (stdin, stdout, stderr *os.File) {
	switch {
	case a.capture != nil:
		stdout, stderr = a.capture.Files()
	case a.lines != nil:
		stdout, stderr = a.lines.Files()
	default:
		stdout, stderr = r.cfg.Sink.Streams()
	}
	if a.redirect != nil {
		stdout = a.redirect.File()
	}
	if stdin = a.stdin; stdin == nil {
		stdin = r.stdin
	}
	return stdin, stdout, stderr
}

// close closes the files that only the process needed.
func (a *attempt) close() {
	if a.stdin != nil {
		_ = a.stdin.Close()
	}
}
