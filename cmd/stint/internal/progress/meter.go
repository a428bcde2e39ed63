// Package progress counts the jobs of a run and shows its progress: as a bar on a
// terminal, or as lines for logs and programs.
package progress

import "sync/atomic"

// Meter counts the jobs of a run. It is safe for concurrent use. The zero value is ready
// for use.
type Meter struct {
	read, skipped, running, succeeded, failed, retried atomic.Int64

	total atomic.Int64 // inputs in all; 0 is unknown
	guess atomic.Int64 // an estimate of total while it is unknown; 0 is none

	shared atomic.Pointer[func() Shared]
}

// Shared is the state of the slots that a run shares with other processes. It is zero
// without such slots.
type Shared struct {
	Max    int
	Others int  // slots held by other processes
	Waits  bool // jobs wait, and no slot is free
}

// Snapshot has the counts of a meter at one moment.
type Snapshot struct {
	Read      int64 // inputs so far
	Skipped   int64 // of them: done by an earlier run
	Running   int64
	Succeeded int64
	Failed    int64
	Retried   int64 // attempts after the first
	Total     int64 // inputs in all; 0 is unknown
	Guess     int64 // an estimate of Total, or 0
	Shared    Shared
}

// Done returns the number of jobs that need no more work.
func (s Snapshot) Done() int64 { return s.Skipped + s.Succeeded + s.Failed }

// Share returns how much of the run is done, from 0 to 1. It returns false if that is
// unknown.
func (s Snapshot) Share() (float64, bool) {
	total := s.Total
	if total == 0 {
		total = s.Guess
	}
	if total == 0 {
		return 0, false
	}
	return min(float64(s.Done())/float64(total), 1), true
}

// Read counts an input.
func (m *Meter) Read() { m.read.Add(1) }

// Skip counts a job that an earlier run has done.
func (m *Meter) Skip() { m.skipped.Add(1) }

// Start counts a job that starts.
func (m *Meter) Start() { m.running.Add(1) }

// Stop counts a job that has stopped running, with any result.
func (m *Meter) Stop() { m.running.Add(-1) }

// Retry counts a job that will run again.
func (m *Meter) Retry() { m.retried.Add(1) }

// End counts a job as done, and returns how many have succeeded and failed in this run.
func (m *Meter) End(ok bool) (succeeded, failed int) {
	if ok {
		return int(m.succeeded.Add(1)), int(m.failed.Load())
	}
	n := m.failed.Add(1)
	return int(m.succeeded.Load()), int(n)
}

// SetTotal sets the number of inputs.
func (m *Meter) SetTotal(n int) { m.total.Store(int64(n)) }

// SetGuess sets the estimated number of inputs.
func (m *Meter) SetGuess(n int64) { m.guess.Store(n) }

// EndOfInput sets the total to the number of inputs read.
func (m *Meter) EndOfInput() { m.total.Store(m.read.Load()) }

// Share sets a function that returns the state of shared slots; it must be safe for
// concurrent use.
func (m *Meter) Share(ask func() Shared) { m.shared.Store(&ask) }

// Snapshot returns the counts.
func (m *Meter) Snapshot() Snapshot {
	var slots Shared
	if ask := m.shared.Load(); ask != nil {
		slots = (*ask)()
	}
	return Snapshot{
		Read: m.read.Load(), Skipped: m.skipped.Load(), Running: m.running.Load(),
		Succeeded: m.succeeded.Load(), Failed: m.failed.Load(), Retried: m.retried.Load(),
		Total: m.total.Load(), Guess: m.guess.Load(), Shared: slots,
	}
}
