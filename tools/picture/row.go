package main

import (
	"fmt"
	"html"
	"image/color"
	"strings"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// paletteTable has the eight colours of a terminal and their bright versions,
// as they read on the window's background.
var paletteTable = [16]string{
	"#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
	"#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
}

// shadeTable says how much of a cell a block fills.
var shadeTable = map[string]float64{"█": 1, "░": 0.25}

// run is cells side by side that are drawn as one.
type run struct {
	column int
	text   string
	style  uv.Style // backgrounds are not drawn
	shade  float64  // of blocks; 0 for letters
}

// runs joins cells. A space between two words stays in the run; more of them
// end it, because SVG would draw them as one.
func runs(cells []uv.Cell) []run {
	var all []run
	last := &run{} // none that may grow, at first and after a gap
	for i, c := range cells {
		shade := shadeTable[c.Content]
		switch {
		case strings.TrimSpace(c.Content) == "":
			if last.shade > 0 || strings.HasSuffix(last.text, " ") {
				last = &run{}
			}
			last.text += " "
		case strings.TrimSpace(last.text) != "" && last.style.Equal(&c.Style) && last.shade == shade:
			last.text += c.Content
		default:
			all = append(all, run{i, c.Content, c.Style, shade})
			last = &all[len(all)-1]
		}
	}
	for i := range all {
		all[i].text = strings.TrimRight(all[i].text, " ")
	}
	return all
}

// drawRow returns a row as SVG, "" for an empty one.
func drawRow(cells []uv.Cell) string {
	var b strings.Builder
	for _, r := range runs(cells) {
		b.WriteString(r.svg())
	}
	return b.String()
}

// svg draws blocks as rectangles: fonts leave seams between them, and some have
// none of the width of letters. Letters are fitted to their cells.
func (r run) svg() string {
	x, length := float64(r.column)*cellWidth, float64(utf8.RuneCountInString(r.text))*cellWidth
	look := fill(r.style.Fg)
	if r.shade > 0 {
		return fmt.Sprintf(`<rect x="%.4g" y="3" width="%.4g" height="%d" opacity="%g"%s/>`,
			x, length, rowHeight-6, r.shade, look)
	}
	if r.style.Attrs&uv.AttrBold != 0 {
		look += ` font-weight="bold"`
	}
	return fmt.Sprintf(`<text x="%.4g" y="%d" textLength="%.4g"%s>%s</text>`,
		x, baseline, length, look, html.EscapeString(r.text))
}

// fill is the attribute for a colour; nil is the terminal's own.
func fill(c color.Color) string {
	switch c := c.(type) {
	case nil:
		return ""
	case ansi.BasicColor:
		return fmt.Sprintf(` style="fill:%s"`, paletteTable[c])
	}
	r, g, b, _ := c.RGBA() // 16 bits each
	return fmt.Sprintf(` style="fill:#%02x%02x%02x"`, r>>8, g>>8, b>>8)
}

func drawCursor(column int) string {
	return fmt.Sprintf(`<rect x="%.4g" y="1" width="%g" height="%d" opacity=".6"/>`,
		float64(column)*cellWidth, cellWidth, rowHeight-2)
}
