package output

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxLine is the longest line, in bytes, that is guaranteed to be written in one piece.
// It bounds memory; longer lines are not read by people.
const maxLine = 1 << 20

// Lines passes on the output of one running job, each line as soon as it is complete.
type Lines struct {
	streams [2]*lineStream // nil for a stream with another destination
	wg      sync.WaitGroup
}

// lineStream is the reading end of one stream's pipe.
type lineStream struct {
	sink   *Sink
	stream Stream
	tagger tagger
	r, w   *os.File // w is the job's end
	part   []byte   // of an incomplete line
	total  int64
}

// Lines returns pipes for the outputs of one job.
func (s *Sink) Lines(stdout, stderr bool, tag string) (*Lines, error) {
	l := &Lines{}
	for stream, wanted := range [2]bool{stdout, stderr} {
		if !wanted {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			l.abandon()
			return nil, err
		}
		l.streams[stream] = &lineStream{
			sink: s, stream: Stream(stream), tagger: tagger{tag: tag, begin: true}, r: r, w: w,
		}
	}
	return l, nil
}

// Files returns the files that the job writes to; nil for a stream with another
// destination.
func (l *Lines) Files() (stdout, stderr *os.File) {
	var files [2]*os.File
	for i, s := range l.streams {
		if s != nil {
			files[i] = s.w
		}
	}
	return files[Stdout], files[Stderr]
}

// Start starts passing on lines. It is called after the job has been started, or has
// failed to start.
func (l *Lines) Start() {
	for _, s := range l.streams {
		if s != nil {
			_ = s.w.Close() // the job has its own copy
			l.wg.Go(s.run)
		}
	}
}

// Finish passes on the rest after the job has ended, and returns the number of bytes in
// all. It does not wait for processes that the job left behind and that hold the pipe
// open.
func (l *Lines) Finish() (total int64) {
	for _, s := range l.streams {
		if s != nil {
			_ = s.r.SetReadDeadline(time.Unix(1, 0))
		}
	}
	l.wg.Wait()
	for _, s := range l.streams {
		if s != nil {
			total += s.total
		}
	}
	return total
}

// abandon closes pipes that no job has got.
func (l *Lines) abandon() {
	for _, s := range l.streams {
		if s != nil {
			_ = s.r.Close()
			_ = s.w.Close()
		}
	}
}

// run reads one stream until its end.
func (s *lineStream) run() {
	defer func() { _ = s.r.Close() }() // never written to
	buf := make([]byte, pieceSize)
	for {
		n, err := s.r.Read(buf)
		s.add(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.drain(buf)
			break
		}
		if err != nil {
			break
		}
	}
	if len(s.part) > 0 {
		s.write(nil)
	}
}

// drain reads what was in the pipe when the job ended. It stops after as many bytes as a
// pipe holds; otherwise a process left behind that never stops writing would keep it here
// forever.
func (s *lineStream) drain(buf []byte) {
	raw, err := s.r.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		for left := maxLine; left > 0; {
			n, err := syscall.Read(int(fd), buf) // non-blocking, as all pipes that Go polls
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if n <= 0 || err != nil {
				return
			}
			s.add(buf[:n])
			left -= n
		}
	})
}

// add passes on the complete lines of text, and stores the rest.
func (s *lineStream) add(text []byte) {
	s.total += int64(len(text))
	end := bytes.LastIndexByte(text, '\n') + 1
	if end > 0 {
		s.write(text[:end])
	}
	if s.part = append(s.part, text[end:]...); len(s.part) > maxLine {
		s.write(nil)
	}
}

// write writes the stored part of a line, and text, which completes it.
func (s *lineStream) write(text []byte) {
	text = append(s.part, text...)
	s.part = text[:0]
	for line := range bytes.Lines(text) {
		s.tagger.add(line)
	}
	s.tagger.finish()
	// The sink reports its error, which ends the run. Until then the job must not block
	// on a full pipe, so reading continues.
	_ = s.sink.together(func(w *locked) { w.write(s.stream, s.tagger.take()) })
}
