// Package output brings the output of jobs to where it should go without ever
// mixing two jobs.
//
// A job that is grouped writes into files of its own without a name: no pipe
// that could fill up and block the job, no copy through this process while it
// runs, nothing left behind by a crash. When the job ends they are copied to
// standard output and error in one piece.
package output

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Sink is where all output ends: this process's standard output and error.
// Its methods may be called from any goroutine.
type Sink struct {
	streams [2]*os.File // standard output, standard error
	screen  Screen
	shared  [2]bool // the stream goes to the screen that the bar is on
	failed  chan struct{}

	mu      sync.Mutex // held while one job's output is written
	err     error      // the first write that failed, and the answer since; guarded by mu
	written int64      // bytes that went to standard output; guarded by mu
}

// Stream numbers the two outputs of a job.
type Stream uint8

// The streams.
const (
	Stdout Stream = iota
	Stderr
)

// Screen is a terminal with a line on it that output must not run into.
type Screen interface {
	Hide() // takes the line off
	Show() // and puts it back
}

// NewSink returns the sink that writes to the given files. screen, which may be
// nil, is where those of them go for which shared is set.
func NewSink(stdout, stderr *os.File, screen Screen, shared [2]bool) *Sink {
	return &Sink{
		streams: [2]*os.File{stdout, stderr}, screen: screen, shared: shared, failed: make(chan struct{}),
	}
}

// Streams returns the files that the sink writes to, for jobs that are to write
// to them themselves.
func (s *Sink) Streams() (stdout, stderr *os.File) { return s.streams[Stdout], s.streams[Stderr] }

// Err returns the first write error, which is the last thing that the sink did.
func (s *Sink) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Failed is closed when a write fails: [Sink.Err] has the error.
func (s *Sink) Failed() <-chan struct{} { return s.failed }

// ReaderGone reports whether standard output is a pipe that nobody can read any
// more: a write would fail with EPIPE.
func (s *Sink) ReaderGone() bool {
	fds := []unix.PollFd{{Fd: int32(s.streams[Stdout].Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLERR != 0
}

// together runs write, which may write many times, with no output of another
// job in between. It answers the error of the first write that ever failed.
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

// Sync makes what was written to standard output durable, where that is a file.
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
	hidden bool // the screen's line is off
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
