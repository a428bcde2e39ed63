package output

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// writeTagged copies lines, and writes a tag before each. It adds a newline to an incomplete
// last line, so that the tag of the next job begins a line.
func writeTagged(w *locked, stream Stream, r io.Reader, tag string) error {
	t := tagger{tag: tag, begin: true}
	buffered := bufio.NewReaderSize(r, pieceSize)
	for {
		piece, err := buffered.ReadSlice('\n')
		t.add(piece)
		// A full buffer is part of a longer line, whose tag has been written.
		if err == nil || err == bufio.ErrBufferFull { //nolint:errorlint // bufio returns it bare
			if len(t.out) >= pieceSize {
				w.write(stream, t.take())
			}
			continue
		}
		t.finish()
		w.write(stream, t.take())
		if err != io.EOF {
			return fmt.Errorf("spool: %w", err)
		}
		return nil
	}
}

// tagger puts a tag and a tab before each line of the added text.
type tagger struct {
	tag   string
	begin bool // the next byte begins a line
	out   []byte
}

// add appends text with at most one newline, as its last byte.
func (t *tagger) add(text []byte) {
	if len(text) == 0 {
		return
	}
	if t.begin && t.tag != "" {
		t.out = append(append(t.out, t.tag...), '\t')
	}
	t.out = append(t.out, text...)
	t.begin = bytes.HasSuffix(text, []byte{'\n'})
}

// finish adds a newline to an incomplete last line.
func (t *tagger) finish() {
	if !t.begin {
		t.out = append(t.out, '\n')
		t.begin = true
	}
}

// take returns the collected text, valid until the next add.
func (t *tagger) take() []byte {
	out := t.out
	t.out = t.out[:0]
	return out
}
