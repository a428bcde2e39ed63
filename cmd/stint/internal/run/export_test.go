package run

import (
	"syscall"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/halt"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/retry"
)

// ExpireAfterEnd reports whether a process counts as timed out whose timeout expires
// after it has ended, but before it was waited for.
func ExpireAfterEnd(p *proc.Process) (timedOut bool) {
	t := startTimeout(p, time.Hour, time.Hour)
	p.Wait(func() {
		t.expire()
		timedOut = t.finish()
	}, nil)
	return timedOut
}

// Suspended reports whether a process with a timeout has timed out that is suspended at once, until
// suspended returns, and killed when runs returns.
func Suspended(
	start func() (*proc.Process, error), limit time.Duration, suspended, runs func(),
) (timedOut bool, err error) {
	r := registry{limit: limit, killAfter: time.Hour}
	p, t, err := r.launch(time.Now(), start)
	if err != nil {
		return false, err
	}
	r.suspend(suspended)
	runs()
	p.Signal(syscall.SIGKILL)
	p.Wait(func() { timedOut = t.finish() }, func(syscall.Signal) {})
	return timedOut, nil
}

// RetryWhileStopping reports whether a job that fails while the run is being stopped gets
// another attempt, and how many such attempts were counted.
func RetryWhileStopping() (again bool, counted int64) {
	meter := &progress.Meter{}
	r := &Run{cfg: &Config{Meter: meter, Retry: retry.Policy{Attempts: 5}}, stop: newStopper()}
	r.backoff.close(func(*job) {})
	again = r.retry(&attempt{job: &job{attempts: 1}})
	return again, meter.Snapshot().Retried
}

// HaltStatus returns the status of a run in which two jobs end at the same time: slow is
// counted before fast, and looks at the halt rule after it.
func HaltStatus(rule halt.Rule, slow, fast proc.Status) *proc.Status {
	v := verdict{rule: rule, meter: &progress.Meter{}}
	v.meter.End(slow == proc.Status{})
	v.count(&job{text: "fast"}, &fast, "")
	v.noteHalt(&slow)
	return v.halted
}

// Changed calls changed.
func (f *JobsFile) Changed() (bool, error) { return f.changed() }

// EndsRun reports whether an error to start a job ends the run, rather than the job.
func EndsRun(err error) bool {
	r := &Run{cfg: &Config{Say: func(string) {}}, stop: newStopper()}
	a := &attempt{job: &job{}, ofProgram: true}
	r.fault(a, err)
	return a.interrupted
}

// HandleWhileStarting handles signals while a process is starting that never starts, and returns
// the signal by which the run ends at once, or 0.
func HandleWhileStarting(signals ...syscall.Signal) (died syscall.Signal) {
	cfg := &Config{Say: func(string) {}, Die: func(sig syscall.Signal) { died = sig }}
	r := &Run{cfg: cfg, stop: newStopper()}
	h := signalHandler{cfg: cfg, registry: &r.registry, stop: r.stop}
	begun := make(chan struct{})
	go func() {
		_, _, _ = r.registry.launch(time.Now(), func() (*proc.Process, error) {
			close(begun)
			select {} // if it ended, this process would be suspended
		})
	}()
	<-begun
	for _, sig := range signals {
		h.handle(sig)
	}
	return died
}
