package main

import (
	"slices"
	"time"
)

// film is what a screen showed, row by row. From one frame to the next most
// rows stay as they are, and many come back: each row has a strip of its own,
// on which a look of the row is drawn once however often it is shown.
type film struct {
	strips []strip
	end    time.Duration
}

// strip is one row over time.
type strip struct {
	looks []string
	cuts  []cut // in order of time; the look changes at each
}

// cut says that a look is shown from a time on.
type cut struct {
	at   time.Duration
	look int // index into looks
}

func newFilm(rows int) *film { return &film{strips: make([]strip, rows)} }

// frame adds the rows that are on the screen at a time. Times must not fall.
func (f *film) frame(at time.Duration, rows []string) {
	f.end = at
	for i, row := range rows {
		f.strips[i].show(at, row)
	}
}

// show adds what the row looks like from now on.
func (s *strip) show(at time.Duration, row string) {
	look := slices.Index(s.looks, row)
	if look < 0 {
		look = len(s.looks)
		s.looks = append(s.looks, row)
	}
	if n := len(s.cuts); n == 0 || s.cuts[n-1].look != look {
		s.cuts = append(s.cuts, cut{at, look})
	}
}

// blank reports whether the row stays empty.
func (s *strip) blank() bool { return len(s.looks) == 0 || len(s.looks) == 1 && s.looks[0] == "" }
