package main

import (
	"fmt"
	"io"
	"regexp"
	"time"
)

// How fast things happen while the camera runs.
const (
	tick    = 80 * time.Millisecond   // between two frames
	keys    = 6                       // typed per frame
	breath  = 400 * time.Millisecond  // before the next command
	holdEnd = 4500 * time.Millisecond // to read the last screen
	patient = time.Minute             // with a command that does not end
)

// camera films two shells, one above the other. After an error its methods do
// nothing, so that a scene reads as a list of what happens.
type camera struct {
	shells []*shell
	focus  *shell // has the cursor
	film   *film
	start  time.Time
	err    error
}

// newCamera starts the shells in dir. Close it after an error, too.
func newCamera(dir string) (*camera, error) {
	c := &camera{film: newFilm(workRows + otherRows), start: time.Now()}
	for _, rows := range []int{workRows, otherRows} {
		s, err := newShell(dir, rows)
		if err != nil {
			return c, err
		}
		c.shells = append(c.shells, s)
	}
	c.focus = c.shells[0]
	c.until(c.shells[0], prompted)
	c.until(c.shells[1], prompted)
	return c, c.err
}

func (c *camera) close() {
	for _, s := range c.shells {
		s.close()
	}
}

// frame waits for the next frame and takes it.
func (c *camera) frame() {
	time.Sleep(tick)
	var rows []string
	for _, s := range c.shells {
		rows = append(rows, s.draw(s == c.focus)...)
	}
	c.film.frame(time.Since(c.start), rows)
}

func (c *camera) pause(d time.Duration) {
	for ; d > 0 && c.err == nil; d -= tick {
		c.frame()
	}
}

// typed types text into s.
func (c *camera) typed(s *shell, text string) {
	c.focus = s
	c.pause(breath)
	for len(text) > 0 && c.err == nil {
		n := min(keys, len(text))
		_, c.err = io.WriteString(s.pty, text[:n])
		text = text[n:]
		c.frame()
	}
}

// until films until the screen of s looks as it should.
func (c *camera) until(s *shell, look *regexp.Regexp) {
	for left := patient; c.err == nil && !look.MatchString(s.text()); left -= tick {
		if left <= 0 {
			c.err = fmt.Errorf("the screen does not match %s after %v:\n%s", look, patient, s.text())
			return
		}
		c.frame()
	}
}

// command types one and films until the shell is ready for more.
func (c *camera) command(s *shell, text string) {
	c.typed(s, text)
	c.until(s, prompted)
}
