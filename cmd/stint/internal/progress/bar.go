package progress

import (
	"io"
	"strings"
	"sync"
)

// eraseLine goes to the beginning of the line and clears it (ECMA-48: CR, EL).
const eraseLine = "\r\x1b[K"

// Bar is a line at the bottom of a terminal that is redrawn. It is safe for concurrent
// use. A nil Bar draws nothing.
type Bar struct {
	w     io.Writer
	width func() int // of the terminal, in columns
	look  style

	mu   sync.Mutex
	line string // the text on the screen, or to restore; guarded by mu
	gone bool   // removed for good; guarded by mu
}

// NewBar returns a bar on the terminal w. width is called for each drawing, since users
// resize terminals.
func NewBar(w io.Writer, width func() int, env func(string) string) *Bar {
	return &Bar{w: w, width: width, look: styleFor(env)}
}

// styleFor chooses a style that the terminal can show, by the usual environment variables.
func styleFor(env func(string) string) style {
	look := style{full: "#", empty: "."}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToUpper(env(name)); locale != "" {
			if strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8") {
				look.full, look.empty = "█", "░"
			}
			break // the first that is set decides
		}
	}
	if env("NO_COLOR") == "" && env("TERM") != "dumb" {
		look.red, look.plain = "\x1b[31m", "\x1b[0m"
	}
	return look
}

// draw draws new counts.
func (b *Bar) draw(s Snapshot, e Estimate) {
	// One column is left free: a full last column makes some terminals wrap.
	line := barLine(s, e, b.width()-1, b.look)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return
	}
	b.line = line
	_, _ = io.WriteString(b.w, eraseLine+line)
}

// Hide removes the bar from the screen until Show, so that other text can be written.
// Calls of Hide and Show must alternate.
func (b *Bar) Hide() {
	if b == nil {
		return
	}
	b.mu.Lock() // held until Show, so that nothing is drawn in between
	if b.line != "" {
		_, _ = io.WriteString(b.w, eraseLine)
	}
}

// Show restores the bar.
func (b *Bar) Show() {
	if b == nil {
		return
	}
	if b.line != "" {
		_, _ = io.WriteString(b.w, b.line)
	}
	b.mu.Unlock()
}

// remove removes the bar for good.
func (b *Bar) remove() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line != "" {
		_, _ = io.WriteString(b.w, eraseLine)
	}
	b.line, b.gone = "", true
}
