package output

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// Capture holds the output of one job that is to be written in one piece. All
// methods but those of the spool's own loop are for one goroutine.
type Capture struct {
	spool   *Spool
	streams [2]captured

	// home is where the output has been moved to, or nil; offset is its place
	// there, the error output behind the standard output.
	home   io.ReaderAt
	offset int64
}

// captured is one stream. The job writes to file. Where that is in memory, the
// spool's loop moves what is too much to disk: disk then holds the first moved
// bytes, and file has a hole there.
type captured struct {
	file *os.File // nil where the stream is not captured

	mu    sync.Mutex // against the spool's loop
	disk  *os.File
	moved int64
	size  int64 // once sealed
}

// Capture returns files for the outputs of one job. A stream that goes
// elsewhere needs none.
//
// Each job gets new ones. Emptying and using the last job's again would mix in
// whatever a process that it left behind still writes.
func (s *Spool) Capture(stdout, stderr bool) (*Capture, error) {
	c := &Capture{spool: s}
	for stream, wanted := range [2]bool{stdout, stderr} {
		if !wanted {
			continue
		}
		f, err := s.open()
		if err != nil {
			c.Close()
			return nil, err
		}
		c.streams[stream].file = f
	}
	s.watch(c)
	return c, nil
}

// Files returns what a job is to write to; nil for a stream that goes elsewhere.
func (c *Capture) Files() (stdout, stderr *os.File) {
	return c.streams[Stdout].file, c.streams[Stderr].file
}

// seal notes how much the job has written. What comes later, from processes
// that it left behind, is not part of its output.
func (c *Capture) seal() error {
	c.spool.unwatch(c)
	for i := range c.streams {
		s := &c.streams[i]
		if s.file == nil {
			continue
		}
		info, err := s.file.Stat()
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		s.mu.Lock() // until the loop has done what it is about
		s.size = max(info.Size(), s.moved)
		s.mu.Unlock()
	}
	return nil
}

// size is the number of bytes that the sealed capture holds.
func (c *Capture) size() int64 { return c.streams[Stdout].size + c.streams[Stderr].size }

// reader reads what one stream of the sealed capture holds.
func (c *Capture) reader(stream Stream) io.Reader {
	s := &c.streams[stream]
	if c.home != nil {
		offset := c.offset
		if stream == Stderr {
			offset += c.streams[Stdout].size
		}
		return io.NewSectionReader(c.home, offset, s.size)
	}
	rest := io.NewSectionReader(s.file, s.moved, s.size-s.moved)
	if s.moved == 0 {
		return rest
	}
	return io.MultiReader(io.NewSectionReader(s.disk, 0, s.moved), rest)
}

// copyTo copies both streams to w, as rehome expects them.
func (c *Capture) copyTo(w io.Writer) error {
	for _, stream := range [...]Stream{Stdout, Stderr} {
		if c.streams[stream].size == 0 {
			continue
		}
		if _, err := io.Copy(w, c.reader(stream)); err != nil {
			return err
		}
	}
	return nil
}

// rehome makes the capture read from where its output has been copied to, and
// frees its own files.
func (c *Capture) rehome(to io.ReaderAt, offset int64) {
	c.Close()
	c.home, c.offset = to, offset
}

// Close frees the files and what they hold. A nil Capture has none.
func (c *Capture) Close() {
	if c == nil {
		return
	}
	c.spool.unwatch(c)
	for i := range c.streams {
		c.streams[i].close()
	}
}

func (s *captured) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range [...]**os.File{&s.file, &s.disk} {
		if *f != nil {
			_ = (*f).Close()
			*f = nil
		}
	}
}
