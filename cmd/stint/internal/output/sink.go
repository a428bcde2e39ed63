// Package output writes the output of jobs to its destination without mixing two jobs.
//
// A grouped job writes into unnamed files of its own: there is no pipe that could fill up
// and block the job, no copying through this process while the job runs, and nothing left
// after a crash. When the job ends, the files are copied to standard output and standard
// error in one piece.
package output

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Sink is the destination of all output: this process's standard output and standard
// error. It is safe for concurrent use.
type Sink struct {
	streams [2]*os.File // standard output, standard error
	screen  Screen
	shared  [2]bool // the stream goes to the screen that shows the bar
	failed  chan struct{}

	mu      sync.Mutex // held while one job's output is written
	err     error      // the first write error, returned from then on; guarded by mu
	written int64      // bytes written to standard output; guarded by mu
}

// Stream is one of the two outputs of a job.
type Stream uint8

// The streams.
const (
	Stdout Stream = iota
	Stderr
)

// Screen is a terminal with a line that output must not overwrite.
type Screen interface {
	Hide() // removes the line
	Show() // restores it
}

// NewSink returns a sink that writes to the given files. screen, which may be nil, is the
// terminal of those streams for which shared is set.
func NewSink(stdout, stderr *os.File, screen Screen, shared [2]bool) *Sink {
	return &Sink{
		streams: [2]*os.File{stdout, stderr}, screen: screen, shared: shared, failed: make(chan struct{}),
	}
}

// Streams returns the files that the sink writes to, for jobs that write to them
// directly.
func (s *Sink) Streams() (stdout, stderr *os.File) { return s.streams[Stdout], s.streams[Stderr] }

// Err returns the first write error, after which the sink writes nothing.
func (s *Sink) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Failed returns a channel that is closed when a write fails; [Sink.Err] returns the
// error.
func (s *Sink) Failed() <-chan struct{} { return s.failed }

// ReaderGone reports whether standard output is a pipe without readers: a write would
// fail with EPIPE.
func (s *Sink) ReaderGone() bool {
	fds := []unix.PollFd{{Fd: int32(s.streams[Stdout].Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLERR != 0
}

// together runs write, which may write several times, without output of another job in
// between. It returns the first write error of the sink.
func (s *Sink) together(write func(w *locked)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		w := &locked{s: s}
		write(w)
		if w.hidden {
			s.screen.Show()
		}
	}
	return s.err
}

// Sync makes the data written to standard output durable, if that is a file.
func (s *Sink) Sync() error {
	s.mu.Lock()
	written := s.written
	s.written = 0
	s.mu.Unlock()
	if written == 0 {
		return nil
	}
	err := s.streams[Stdout].Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // a terminal or a pipe
	}
	return err
}

// locked is a sink whose mutex is held.
type locked struct {
	s      *Sink
	hidden bool // the screen's line is removed
}

// write writes b to a stream.
func (l *locked) write(stream Stream, b []byte) {
	if l.s.err != nil || len(b) == 0 {
		return
	}
	if l.s.screen != nil && l.s.shared[stream] && !l.hidden {
		l.s.screen.Hide()
		l.hidden = true
	}
	n, err := l.s.streams[stream].Write(b)
	if stream == Stdout {
		l.s.written += int64(n)
	}
	if err != nil {
		l.s.err = fmt.Errorf("write output: %w", err)
		close(l.s.failed)
	}
}
