package run

import (
	"errors"
	"fmt"
	"io"

	"github.com/stintgo/stint/cmd/stint/internal/input"
	"github.com/stintgo/stint/cmd/stint/internal/joblog"
	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/internal/proc"
)

// feed reads inputs and submits a job for each, until there are no more or the run stops.
// It returns the error of the input.
func (r *Run) feed() error {
	r.cfg.Meter.SetTotal(r.cfg.Source.Total())
	var reader io.Reader
	if file := r.cfg.Source.File; file != nil {
		// The wait for input also ends after a halt.
		in, done, err := input.Interruptible(r.stop.starting, file)
		if err != nil {
			return err
		}
		defer done()
		reader = in
	}
	defer r.refusals.sum()
	seq := 0
	for in, err := range r.cfg.Source.all(reader, r.cfg.Meter.SetGuess) {
		if r.stop.starting.Err() != nil {
			return nil
		}
		if err != nil {
			// What was read before the error is valid, and runs.
			return fmt.Errorf("read inputs: %w", err)
		}
		seq++
		r.cfg.Meter.Read()
		r.take(seq, in)
	}
	r.cfg.Meter.EndOfInput()
	if n := r.cfg.Log.Unlisted(); n > 0 && r.stop.starting.Err() == nil {
		jobs := "1 job"
		if n > 1 {
			jobs = fmt.Sprintf("%d jobs", n)
		}
		r.cfg.Say(fmt.Sprintf("the job log has %s that the inputs do not make", jobs))
	}
	return nil
}

// take makes a job of an input and submits it, unless the job log has it as done or it
// cannot be run.
func (r *Run) take(seq int, in item) {
	j, err := r.cfg.job(seq, in)
	if err != nil {
		r.refuse(j, err)
		return
	}
	done, err := r.cfg.Log.Done(seq, j.text)
	switch {
	case errors.Is(err, joblog.ErrChanged):
		r.stop.fail(fmt.Errorf("%w; it is now: %s\n"+
			"Use a new job log, or --resume-by command if only the order of the inputs is another", err, brief(j.text)))
	case done:
		r.cfg.Meter.Skip()
		r.stop.fail(r.printer.Print(output.Result{Seq: seq}))
	default:
		r.submit(j)
	}
}

// refuse counts an invalid input as a failed job. It gets no line in the job log, so that
// a resumed run reads it again.
func (r *Run) refuse(j *job, err error) {
	r.refusals.note(j, err)
	r.stop.fail(r.printer.Print(output.Result{Seq: j.Seq}))
	r.count(j, &proc.Status{Exit: proc.ExitCannotRun}, err.Error())
}
