package output

import (
	"fmt"
	"io"
	"os"
)

// Capture holds the output of one job that is to be written in one piece. It
// is for one goroutine.
type Capture struct {
	files [2]*os.File // nil where the stream is not captured
	sizes [2]int64    // of the sealed files

	moved  io.ReaderAt // where the output has been moved to, or nil
	offset int64       // of the output in moved
}

// Capture returns files for the outputs of one job. A stream that goes
// elsewhere needs none.
//
// Each job gets new ones. Emptying and using the last job's would save ten
// microseconds, and mix in whatever a process that it left behind still writes.
func (s *Spool) Capture(stdout, stderr bool) (*Capture, error) {
	c := &Capture{}
	for stream, wanted := range [2]bool{stdout, stderr} {
		if !wanted {
			continue
		}
		f, err := s.open()
		if err != nil {
			c.Close()
			return nil, err
		}
		c.files[stream] = f
	}
	return c, nil
}

// Files returns what a job is to write to; nil for a stream that goes elsewhere.
func (c *Capture) Files() (stdout, stderr *os.File) { return c.files[Stdout], c.files[Stderr] }

// seal notes how much the job has written. What comes later, from processes
// that it left behind, is not part of its output.
func (c *Capture) seal() error {
	for stream, f := range c.files {
		if f == nil {
			continue
		}
		info, err := f.Stat()
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		c.sizes[stream] = info.Size()
	}
	return nil
}

// size is the number of bytes that the sealed capture holds.
func (c *Capture) size() int64 { return c.sizes[Stdout] + c.sizes[Stderr] }

// section reads what one stream of the sealed capture holds.
func (c *Capture) section(stream Stream) *io.SectionReader {
	size := c.sizes[stream]
	if c.moved == nil {
		return io.NewSectionReader(c.files[stream], 0, size)
	}
	offset := c.offset
	if stream == Stderr {
		offset += c.sizes[Stdout]
	}
	return io.NewSectionReader(c.moved, offset, size)
}

// move makes the capture read from where its output has been copied to, the
// error output behind the standard output, and frees its own files.
func (c *Capture) move(to io.ReaderAt, offset int64) {
	c.Close()
	c.moved, c.offset = to, offset
}

// copyTo copies both streams to w, as move expects them.
func (c *Capture) copyTo(w io.Writer) error {
	for _, stream := range [...]Stream{Stdout, Stderr} {
		if c.sizes[stream] == 0 {
			continue
		}
		if _, err := io.Copy(w, c.section(stream)); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the files and what they hold. A nil Capture has none.
func (c *Capture) Close() {
	if c == nil {
		return
	}
	for stream, f := range c.files {
		if f != nil {
			_ = f.Close()
			c.files[stream] = nil
		}
	}
}
