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

// View is the state of the uploads of a Run at one moment.
type View struct {
	Running []transfer.Transfer
	// Done, Size and Rate are sums over the unfinished ones: bytes, and bytes per second.
	Done, Size int64
	Unsized    int64 // of Done, what belongs to uploads whose size is not known
	Rate       float64
	Left       int // unfinished ones
	Others     int // unfinished ones of other calls
	Sum        Sum // of the finished ones
}

// Show shows uploads. Its methods are not called concurrently.
type Show interface {
	Progress(v View)
	Finished(t transfer.Transfer)
	// Note shows a message of one line.
	Note(text string)
	// End is called once, last, with what [Run] returns.
	End(sum Sum, err error)
}

// Notes shows messages and failures, and no progress.
type Notes struct{ W io.Writer }

// Progress shows nothing.
func (Notes) Progress(View) {}

// Finished shows a failure.
func (n Notes) Finished(t transfer.Transfer) {
	if t.State != queue.Succeeded {
		_, _ = io.WriteString(n.W, finishedLine(t))
	}
}

// Note writes a line.
func (n Notes) Note(text string) { _, _ = io.WriteString(n.W, "stint: "+text+"\n") }

// End shows nothing.
func (Notes) End(Sum, error) {}

// linesEvery is the interval of the lines about progress: logs are read much later.
const linesEvery = 10 * time.Second

// Lines shows a line for each finished upload, and one about all now and then.
type Lines struct {
	Notes

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

// JSON writes a line for each finished upload, one about all each second, and one at the end.
// Notes go to another writer, as text.
type JSON struct {
	Notes

	Out  io.Writer
	last time.Time
}

// The lines of JSON. Their fields are a stable interface.
type (
	progressEvent struct {
		Event     string              `json:"event"` // progress
		Time      string              `json:"time"`
		Done      int64               `json:"done"` // bytes of the unfinished uploads
		Size      int64               `json:"size"`
		Rate      float64             `json:"rate"` // bytes per second
		Left      int                 `json:"left"` // uploads
		Sent      int                 `json:"sent"`
		Skipped   int                 `json:"skipped"`
		Failed    int                 `json:"failed"`
		Cancelled int                 `json:"cancelled"`
		Running   []transfer.Transfer `json:"running"`
	}
	finishedEvent struct {
		Event    string            `json:"event"` // finished
		Time     string            `json:"time"`
		Transfer transfer.Transfer `json:"transfer"`
	}
	endEvent struct {
		Event     string `json:"event"` // end
		Time      string `json:"time"`
		Sent      int    `json:"sent"`
		Bytes     int64  `json:"bytes"` // of those that were sent
		Skipped   int    `json:"skipped"`
		Failed    int    `json:"failed"`
		Cancelled int    `json:"cancelled"`
		Left      int    `json:"left"`
		Error     string `json:"error,omitempty"`
	}
)

// Progress writes a line each second.
func (j *JSON) Progress(v View) {
	now := clock.Now()
	if now.Sub(j.last) < time.Second {
		return
	}
	j.last = now
	j.write(progressEvent{
		Event: "progress", Time: timeText(), Done: v.Done, Size: v.Size, Rate: v.Rate, Left: v.Left, Sent: v.Sum.Sent,
		Skipped: v.Sum.Skipped, Failed: v.Sum.Failed, Cancelled: v.Sum.Cancelled,
		Running: append([]transfer.Transfer{}, v.Running...),
	})
}

// Finished writes a line.
func (j *JSON) Finished(t transfer.Transfer) {
	j.write(finishedEvent{Event: "finished", Time: timeText(), Transfer: t})
}

// End writes a line.
func (j *JSON) End(sum Sum, err error) {
	end := endEvent{
		Event: "end", Time: timeText(), Sent: sum.Sent, Bytes: sum.Bytes, Skipped: sum.Skipped, Failed: sum.Failed,
		Cancelled: sum.Cancelled, Left: sum.Left,
	}
	if err != nil {
		end.Error = err.Error()
	}
	j.write(end)
}

func timeText() string { return clock.Now().UTC().Format(time.RFC3339Nano) }

func (j *JSON) write(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, _ = j.Out.Write(append(b, '\n'))
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
	b.remove()
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(cut(line, b.Width()-1) + "\n")
	}
	_, _ = io.WriteString(b.W, text.String())
	b.drawn = len(lines)
}

// Finished writes a line in place of the bars if the upload has failed.
func (b *Bars) Finished(t transfer.Transfer) {
	if t.State != queue.Succeeded {
		b.remove()
		Notes{b.W}.Finished(t)
	}
}

// Note writes a line in place of the bars.
func (b *Bars) Note(text string) {
	b.remove()
	Notes{b.W}.Note(text)
}

// End removes the bars.
func (b *Bars) End(Sum, error) { b.remove() }

func (b *Bars) remove() {
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
		share(t.Done, t.Size), speed(t.Done, t.Size, t.Rate))
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
	if v.Sum.Cancelled > 0 {
		line += fmt.Sprintf(", %d cancelled", v.Sum.Cancelled)
	}
	switch {
	case v.Unsized == 0:
		line += fmt.Sprintf(", %s of %s, %s", Size(v.Done), Size(v.Size), speed(v.Done, v.Size, v.Rate))
		if left := progress.TimeLeft(v.Size-v.Done, v.Rate); left > 0 {
			line += ", " + progress.ClockText(left) + " left"
		}
	case v.Size == 0:
		line += fmt.Sprintf(", %s, %s", Size(v.Done), rate(v.Rate))
	default:
		line += fmt.Sprintf(", %s of %s and %s of the input, %s", Size(v.Done-v.Unsized), Size(v.Size), Size(v.Unsized),
			rate(v.Rate))
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

// share returns how much is done, in percent if the size is known.
func share(done, size int64) string {
	switch {
	case size == 0 && done > 0:
		return Size(done)
	case size == 0:
		return "   "
	}
	return fmt.Sprintf("%3d%%", done*100/size)
}

// speed says how fast uploads are sent, or that all of their bytes have been, and the server has not answered.
func speed(done, size int64, perSecond float64) string {
	if size > 0 && done >= size {
		return "waits for the server"
	}
	return rate(perSecond)
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
