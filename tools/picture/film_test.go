package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFilmDrawsEachLookOnce(t *testing.T) {
	f := newFilm(3)
	for i, row := range []string{"a", "a", "b", "a", "a", "b"} {
		f.frame(time.Duration(i)*time.Second, []string{"same", row, ""})
	}
	if s := f.strips[0]; len(s.looks) != 1 || len(s.cuts) != 1 {
		t.Errorf("a row that stays as it is has %d looks and %d cuts, want 1 and 1", len(s.looks), len(s.cuts))
	}
	want := []cut{{0, 0}, {2 * time.Second, 1}, {3 * time.Second, 0}, {5 * time.Second, 1}}
	if s := f.strips[1]; !slices.Equal(s.looks, []string{"a", "b"}) || !slices.Equal(s.cuts, want) {
		t.Errorf("looks %q with cuts %v, want [a b] with %v", s.looks, s.cuts, want)
	}
	if !f.strips[2].blank() {
		t.Error("a row that was never written to is not blank")
	}
}

func TestFilmMovesStripsByTime(t *testing.T) {
	f := newFilm(2)
	f.frame(10*time.Millisecond, []string{"a", "a"})
	f.frame(time.Second, []string{"a", "b"})
	f.frame(4*time.Second, []string{"a", "b"})
	got := f.svg(8 * time.Second)
	wellFormed(t, got)
	want := ".r1{transform:translateY(-20px);animation:r1 8s step-end infinite}\n" +
		"@keyframes r1{0%{transform:translateY(-0px)}25%{transform:translateY(-20px)}}\n"
	if !strings.Contains(got, want) {
		t.Errorf("no\n%sin\n%s", want, got)
	}
	if strings.Contains(got, "@keyframes r0") {
		t.Error("a row that stays as it is moves")
	}
}

// A real terminal shows what SVG must not take for its own.
func TestCameraFilmsAShell(t *testing.T) {
	c, err := newCamera(t.TempDir())
	defer c.close()
	if err != nil {
		t.Fatal(err)
	}
	c.command(c.shells[0], "printf '\\033[31m<&>\\033[m  \"q\" ███\\n'\n")
	if c.err != nil {
		t.Fatal(c.err)
	}
	got := c.film.svg(time.Second)
	wellFormed(t, got)
	want := `<text x="0" y="15" textLength="25.2" style="fill:#ff7b72">&lt;&amp;&gt;</text>` +
		`<text x="42" y="15" textLength="25.2">&#34;q&#34;</text>` +
		`<rect x="75.6" y="3" width="25.2" height="14" opacity="1"/>`
	if !strings.Contains(got, want) {
		t.Errorf("no\n%s\nin\n%s", want, got)
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}
