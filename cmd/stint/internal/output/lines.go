package output

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxLine is the longest line, in bytes, that is sure to be written in one
// piece. Nothing longer is read by people, and memory is bounded by it.
const maxLine = 1 << 20

// Lines passes the output of one running job on, each line as soon as it is
// whole.
type Lines struct {
	streams [2]*lineStream // nil where the stream goes elsewhere
	wg      sync.WaitGroup
}

// lineStream is the reading end of one stream's pipe.
type lineStream struct {
	sink   *Sink
	stream Stream
	tagger tagger
	r, w   *os.File // w is the job's end
	part   []byte   // of a line that is not whole yet
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

// Files returns what the job is to write to; nil for a stream that goes
// elsewhere.
func (l *Lines) Files() (stdout, stderr *os.File) {
	var files [2]*os.File
	for i, s := range l.streams {
		if s != nil {
			files[i] = s.w
		}
	}
	return files[Stdout], files[Stderr]
}

// Start begins to pass lines on. It is called once the job has been started,
// or has failed to.
func (l *Lines) Start() {
	for _, s := range l.streams {
		if s != nil {
			_ = s.w.Close() // the job has its own
			l.wg.Go(s.run)
		}
	}
}

// Finish passes on what is left after the job has ended, and returns how many
// bytes there were in all. It does not wait for processes that the job left
// behind and that hold the pipe open.
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

// abandon closes pipes that no job was given.
func (l *Lines) abandon() {
	for _, s := range l.streams {
		if s != nil {
			_ = s.r.Close()
			_ = s.w.Close()
		}
	}
}

// run is the loop that reads one stream.
func (s *lineStream) run() {
	defer func() { _ = s.r.Close() }() // nothing is written to it
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

// drain reads what the job had written when it ended: the pipe holds it. It
// stops after a pipe's worth, or a process left behind that never stops writing
// would keep it here for ever.
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

// add takes what was read and passes its whole lines on.
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

// write writes the line that was begun, and text, which ends one.
func (s *lineStream) write(text []byte) {
	text = append(s.part, text...)
	s.part = text[:0]
	for line := range bytes.Lines(text) {
		s.tagger.add(line)
	}
	s.tagger.finish()
	// The sink says that it has failed, which ends the run. Until then the job
	// must not be blocked by a pipe that nobody reads, so reading goes on.
	_ = s.sink.together(func(w *locked) { w.write(s.stream, s.tagger.take()) })
}
