package upload

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// View is a look at the uploads of a Run.
type View struct {
	Running []transfer.Transfer
	// Done, Size and Rate are sums over the unfinished ones: bytes, and bytes per second.
	Done, Size int64
	Rate       float64
	Left       int // unfinished ones
	Others     int // unfinished ones of other calls
	Sum        Sum // of the finished ones
}

// Show shows uploads. Its methods are not called concurrently.
type Show interface {
	Progress(v View)
	Finished(t transfer.Transfer)
	// End is called last, and again if the process goes on with another server.
	End()
}

// Silent shows failures alone.
type Silent struct{ W io.Writer }

// Progress shows nothing.
func (Silent) Progress(View) {}

// Finished shows a failure.
func (s Silent) Finished(t transfer.Transfer) {
	if t.State != queue.Succeeded {
		_, _ = io.WriteString(s.W, finishedLine(t))
	}
}

// End does nothing.
func (Silent) End() {}

// linesEvery is the interval of the lines about progress: logs are read much later.
const linesEvery = 10 * time.Second

// Lines shows a line for each finished upload, and one about all now and then.
type Lines struct {
	W    io.Writer
	last time.Time
}

// Progress writes a line every ten seconds.
func (l *Lines) Progress(v View) {
	now := clock.Now()
	if l.last.IsZero() {
		l.last = now
	}
	if now.Sub(l.last) >= linesEvery {
		l.last = now
		_, _ = io.WriteString(l.W, "stint: "+overall(v)+"\n")
	}
}

// Finished writes a line.
func (l *Lines) Finished(t transfer.Transfer) { _, _ = io.WriteString(l.W, finishedLine(t)) }

// End does nothing.
func (l *Lines) End() {}

// JSON writes a line for each finished upload, and one about all each second.
type JSON struct {
	W    io.Writer
	last time.Time
}

// Progress writes a line each second.
func (j *JSON) Progress(v View) {
	if now := clock.Now(); now.Sub(j.last) >= time.Second {
		j.last = now
		j.write(map[string]any{
			"event": "progress", "done": v.Done, "size": v.Size, "rate": v.Rate, "left": v.Left, "sent": v.Sum.Sent,
			"skipped": v.Sum.Skipped, "failed": v.Sum.Failed, "running": v.Running,
		})
	}
}

// Finished writes a line.
func (j *JSON) Finished(t transfer.Transfer) {
	j.write(map[string]any{"event": "finished", "transfer": t})
}

// End does nothing.
func (j *JSON) End() {}

func (j *JSON) write(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, _ = j.W.Write(append(b, '\n'))
	}
}

// barsMost is the number of uploads with a bar of their own.
const barsMost = 10

// Bars shows a bar for each running upload and one for all, on a terminal.
type Bars struct {
	W     io.Writer
	Width func() int
	drawn int // lines
}

// Progress draws the bars anew.
func (b *Bars) Progress(v View) {
	var lines []string
	for i, t := range v.Running {
		if i == barsMost {
			lines = append(lines, fmt.Sprintf("… and %d more", len(v.Running)-barsMost))
			break
		}
		lines = append(lines, b.bar(t))
	}
	lines = append(lines, overall(v))
	b.End()
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(cut(line, b.Width()-1) + "\n")
	}
	_, _ = io.WriteString(b.W, text.String())
	b.drawn = len(lines)
}

// Finished writes a line above the bars if the upload has failed.
func (b *Bars) Finished(t transfer.Transfer) {
	if t.State != queue.Succeeded {
		b.End()
		_, _ = io.WriteString(b.W, finishedLine(t))
	}
}

// End removes the bars.
func (b *Bars) End() {
	if b.drawn > 0 {
		_, _ = fmt.Fprintf(b.W, "\x1b[%dA\x1b[J", b.drawn)
	}
	b.drawn = 0
}

// barCells is the width of a bar.
const barCells = 20

func (b *Bars) bar(t transfer.Transfer) string {
	full := 0
	if t.Size > 0 {
		full = int(min(barCells, t.Done*barCells/t.Size))
	}
	line := fmt.Sprintf("[%s%s] %s %s", strings.Repeat("#", full), strings.Repeat(".", barCells-full),
		share(t.Done, t.Size), rate(t.Rate))
	if t.ETA > 0 {
		line += " " + progress.ClockText(t.ETA)
	}
	return line + "  " + view.Plain(t.Name)
}

// overall is a line about all uploads of a Run.
func overall(v View) string {
	line := fmt.Sprintf("%d left", v.Left)
	if v.Sum.Sent > 0 {
		line += fmt.Sprintf(", %d sent", v.Sum.Sent)
	}
	if v.Sum.Failed > 0 {
		line += fmt.Sprintf(", %d failed", v.Sum.Failed)
	}
	line += fmt.Sprintf(", %s of %s, %s", Size(v.Done), Size(v.Size), rate(v.Rate))
	if rest := v.Size - v.Done; rest > 0 && v.Rate > 0 {
		line += ", " + progress.ClockText(time.Duration(float64(rest)/v.Rate*float64(time.Second))) + " left"
	}
	if v.Others > 0 {
		line += fmt.Sprintf("; %d of other calls", v.Others)
	}
	return line
}

func finishedLine(t transfer.Transfer) string {
	switch t.State {
	case queue.Succeeded:
		return fmt.Sprintf("sent %s (%s) %s\n", view.Plain(t.Name), Size(t.Size), t.URL)
	case queue.Cancelled:
		return fmt.Sprintf("stint: %s was cancelled\n", view.Plain(t.Path))
	default:
		return fmt.Sprintf("stint: %s failed: %s\n", view.Plain(t.Path), view.Plain(t.Err))
	}
}

func share(done, size int64) string {
	if size == 0 {
		return "   "
	}
	return fmt.Sprintf("%3d%%", done*100/size)
}

func rate(perSecond float64) string { return Size(int64(perSecond)) + "/s" }

// Size returns a number of bytes as people read it, such as 12.3 MiB.
func Size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d B", bytes)
	}
	value, units := float64(bytes)/unit, "KMGTPE"
	for value >= unit-0.05 {
		value /= unit
		units = units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}

// cut shortens a line to a number of columns.
func cut(line string, columns int) string {
	if runes := []rune(line); len(runes) > columns && columns > 0 {
		return string(runes[:columns-1]) + "…"
	}
	return line
}
