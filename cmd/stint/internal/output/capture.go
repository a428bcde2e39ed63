package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Capture holds the output of one job, to be written in one piece. All methods except
// those called by the spool's loop are for one goroutine.
type Capture struct {
	spool   *Spool
	streams [2]captured

	// home is where the output has been moved, or nil; offset is its position there,
	// standard error after standard output.
	home   io.ReaderAt
	offset int64
}

// captured is one stream. The job writes to file. If file is in memory, the spool's loop
// moves large output to disk: disk then has the first moved bytes, and file has a hole
// there.
type captured struct {
	file *os.File // nil if the stream is not captured

	mu    sync.Mutex // excludes the spool's loop
	disk  *os.File
	moved int64
	size  int64 // set by seal
}

// Capture returns files for the outputs of one job. A stream with another destination
// needs none.
//
// Each job gets new files. If the files of the last job were emptied and reused, output
// of processes that it left behind would be mixed in.
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

// Files returns the files that a job writes to; nil for a stream with another
// destination.
func (c *Capture) Files() (stdout, stderr *os.File) {
	return c.streams[Stdout].file, c.streams[Stderr].file
}

// seal records how much the job has written. Later output, from processes that it left
// behind, is not part of the job's output.
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
		s.mu.Lock() // until the loop has finished its step
		s.size = max(info.Size(), s.moved)
		s.mu.Unlock()
	}
	return nil
}

// size returns the number of bytes in the sealed capture.
func (c *Capture) size() int64 { return c.streams[Stdout].size + c.streams[Stderr].size }

// reader returns a reader of one stream of the sealed capture.
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

// copyTo copies both streams to w, in the order that rehome expects. A process that the job left
// behind may have truncated a stream since it was sealed: then the size is what is left.
func (c *Capture) copyTo(w io.Writer) error {
	for _, stream := range [...]Stream{Stdout, Stderr} {
		if c.streams[stream].size == 0 {
			continue
		}
		n, err := io.Copy(w, c.reader(stream))
		if err != nil {
			return err
		}
		c.streams[stream].cut(n)
	}
	return nil
}

// bytes returns both streams, in the order that rehome expects, as copyTo copies them.
func (c *Capture) bytes() ([]byte, error) {
	text := make([]byte, 0, c.size())
	for _, stream := range [...]Stream{Stdout, Stderr} {
		from := len(text)
		text = text[:from+int(c.streams[stream].size)]
		n, err := io.ReadFull(c.reader(stream), text[from:])
		if err != nil && !truncated(err) {
			return nil, err
		}
		text = text[:from+n]
		c.streams[stream].cut(int64(n))
	}
	return text, nil
}

// truncated reports whether err is that of a file which is shorter than when it was sealed.
func truncated(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// cut sets the size of a stream of which less is left.
func (s *captured) cut(size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
}

// rehome makes the capture read from the copy of its output, and closes its own files.
func (c *Capture) rehome(to io.ReaderAt, offset int64) {
	c.Close()
	c.home, c.offset = to, offset
}

// Close closes the files, which frees their memory. A nil Capture has none.
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
