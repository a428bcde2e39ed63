package main

import (
	"fmt"
	"strings"
	"time"
)

// The size of the terminal, in columns and rows, and of what is drawn, in
// pixels. The letters' width is that of most monospaced fonts at this size;
// for all others, text is fitted to it.
const (
	columns   = 96
	workRows  = 21
	otherRows = 2
	margin    = 16
	titleBar  = 36
	rowHeight = 20
	baseline  = 15
	cellWidth = 8.4
	gap       = 14 // between the two shells
	width     = 2*margin + columns*cellWidth
	divider   = titleBar + workRows*rowHeight + gap/2
	height    = divider + gap/2 + otherRows*rowHeight + margin/2
)

// head is the window. It brings its own background, so that it reads on light
// and dark pages alike, and asks the reader's machine for its own fonts.
const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]g %[2]d" width="%[1]g" height="%[2]d" role="img">
<title>stint run compresses files, is killed, and resumed</title>
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#d8dee9}
rect{fill:#d8dee9}
%[3]s@media(prefers-reduced-motion:reduce){g{animation:none!important}}
</style>
<rect x=".5" y=".5" width="%[4]g" height="%[5]d" rx="10" style="fill:#161b22;stroke:#4b535d"/>
<circle cx="22" cy="19" r="6" fill="#ff5f57"/>
<circle cx="42" cy="19" r="6" fill="#febc2e"/>
<circle cx="62" cy="19" r="6" fill="#28c840"/>
<path d="M1 %[6]dH%[4]g" stroke="#4b535d"/>
`

// svg draws the film, which takes the time length and starts again.
func (f *film) svg(length time.Duration) string {
	var rules, body strings.Builder
	for i := range f.strips {
		s := &f.strips[i]
		if s.blank() {
			continue
		}
		y := titleBar + i*rowHeight
		if i >= workRows {
			y += gap
		}
		if len(s.cuts) > 1 {
			rules.WriteString(s.rule(i, f.end, length))
		}
		// An inner svg cuts off what is outside of it: all looks but one.
		fmt.Fprintf(&body, "<svg x=\"%d\" y=\"%d\" height=\"%d\"><g class=\"r%d\">\n", margin, y, rowHeight, i)
		for n, look := range s.looks {
			if look != "" {
				fmt.Fprintf(&body, "<g transform=\"translate(0 %d)\">%s</g>\n", n*rowHeight, look)
			}
		}
		body.WriteString("</g></svg>\n")
	}
	return fmt.Sprintf(head, width, height, rules.String(), width-1, height-1, divider) + body.String() + "</svg>\n"
}

// rule moves the strip of row i past its window. Without animations the last look
// stays there, as for printers and readers with reduced motion.
func (s *strip) rule(i int, end, length time.Duration) string {
	var b strings.Builder
	last := s.cuts[len(s.cuts)-1].look
	fmt.Fprintf(&b, ".r%d{transform:translateY(-%dpx);animation:r%[1]d %[3]gs step-end infinite}\n@keyframes r%[1]d{",
		i, last*rowHeight, length.Seconds())
	for n, c := range s.cuts {
		share := 100 * float64(c.at) / float64(end)
		if n == 0 {
			share = 0 // the first frame is a tick late
		}
		fmt.Fprintf(&b, "%.4g%%{transform:translateY(-%dpx)}", share, c.look*rowHeight)
	}
	b.WriteString("}\n")
	return b.String()
}
