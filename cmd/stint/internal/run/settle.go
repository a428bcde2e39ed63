package run

import (
	"fmt"
	"math/rand/v2"
	"syscall"

	"github.com/stintgo/stint/cmd/stint/internal/halt"
	"github.com/stintgo/stint/cmd/stint/internal/joblog"
	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/internal/proc"
)

// settle decides whether a job is done, will be run again, or neither because the run
// ends. It reports whether the job will be run again.
//
// A job that was ended because the run ends has not failed. It is neither counted nor
// logged, so that a resumed run runs it again.
func (r *Run) settle(a *attempt) (again bool) {
	ok := a.status == proc.Status{}
	switch {
	case ok:
	case a.interrupted:
		a.discard()
		return false
	case r.retry(a):
		a.discard()
		return true
	}
	if ok && !r.commit(a) {
		if a.interrupted {
			a.discard()
			return false
		}
		ok = false
	}
	if !ok {
		a.redirect.Discard()
	}
	if err := r.print(a); err != nil {
		r.stop.fail(err)
		return false
	}
	r.count(a.job, &a.status, a.problem)
	return false
}

// retry schedules another attempt, if the job has one left. Once the run starts no more
// jobs, it schedules none: a job that was still running then has failed, while jobs that
// wait for an attempt stay undone.
func (r *Run) retry(a *attempt) bool {
	j := a.job
	delay, ok := r.cfg.Retry.Next(j.attempts, j.delay, rand.Uint64)
	if !ok || a.faulty || r.stop.starting.Err() != nil {
		return false
	}
	j.delay = delay
	if !r.backoff.add(j, delay, r.enqueue) {
		return false // the run stopped just now
	}
	r.cfg.Meter.Retry()
	return true
}

// commit gives a redirected output its name. If that fails, the job has failed.
func (r *Run) commit(a *attempt) bool {
	if a.redirect == nil {
		return true
	}
	err := a.redirect.Commit(r.cfg.Log != nil)
	if err != nil {
		a.ofProgram = false
		r.fault(a, fmt.Errorf("keep its output: %w", err))
	}
	return err == nil
}

// print writes the job's output, and then its line in the job log.
func (r *Run) print(a *attempt) error {
	result := output.Result{Seq: a.job.Seq, Capture: a.capture}
	if r.cfg.Tag {
		result.Tag = a.job.tag()
	}
	if a.lines != nil {
		if err := r.cfg.Sink.Err(); err != nil {
			return err
		}
	}
	if r.cfg.Log != nil {
		record := a.record() // the attempt itself would take memory until the output's turn comes
		result.Written = func(size int64) error {
			record.Receive += size
			return r.cfg.Log.Append(record)
		}
	}
	return r.printer.Print(result)
}

func (a *attempt) record() *joblog.Record {
	return &joblog.Record{
		Seq: a.job.Seq, Start: a.started, Runtime: a.took, Receive: a.passed,
		Exit: a.status.Exit, Signal: a.status.Signal, Command: a.job.text,
	}
}

// count counts a job as done, and halts the run if the halt rule is met.
func (r *Run) count(j *job, status *proc.Status, problem string) {
	if !r.verdict.count(j, status, problem) {
		return
	}
	if r.cfg.Halt.When == halt.Now {
		r.stop.end(syscall.SIGTERM, errHalted)
		return
	}
	r.stop.drain(errHalted)
}
