package progress

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// plainLine returns one line of a log.
func plainLine(s Snapshot, e Estimate) string {
	line := "stint: " + of(s) + " done" + percent(s)
	if s.Failed > 0 {
		line += fmt.Sprintf(", %d failed", s.Failed)
	}
	line += fmt.Sprintf(", %d running, %s", s.Running, rate(e.PerSecond))
	if e.Left > 0 {
		line += ", " + ClockText(e.Left) + " left"
	}
	if s.Shared.Waits {
		line += ", waits: " + s.Shared.held()
	}
	return line + "\n"
}

// held returns how many shared slots other processes hold.
func (s Shared) held() string {
	return fmt.Sprintf("other processes hold %d of %d slots", s.Others, s.Max)
}

// of returns "7/100", or "7/~100" if 100 is an estimate, or "7".
func of(s Snapshot) string {
	done := strconv.FormatInt(s.Done(), 10)
	switch {
	case s.Total > 0:
		return done + "/" + strconv.FormatInt(s.Total, 10)
	case s.Guess > 0:
		return done + "/~" + strconv.FormatInt(s.Guess, 10)
	}
	return done
}

func percent(s Snapshot) string {
	share, ok := s.Share()
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (%d%%)", int(share*100))
}

// rate returns a speed in a readable unit.
func rate(perSecond float64) string {
	switch {
	case perSecond == 0:
		return "-/s"
	case perSecond < 0.1:
		return fmt.Sprintf("%.1f/min", perSecond*60)
	case perSecond < 100:
		return fmt.Sprintf("%.1f/s", perSecond)
	}
	return fmt.Sprintf("%.0f/s", perSecond)
}

// ClockText returns a duration as 0:07, 12:34 or 5:00:00.
func ClockText(d time.Duration) string {
	seconds := int64((d + time.Second - 1) / time.Second)
	if seconds < 3600 {
		return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// event is one line for programs. Its fields are a stable interface.
type event struct {
	Event     string  `json:"event"` // progress, or end for the last
	Time      string  `json:"time"`
	Done      int64   `json:"done"`
	Total     int64   `json:"total,omitempty"` // left out while it is unknown
	Succeeded int64   `json:"succeeded"`
	Failed    int64   `json:"failed"`
	Skipped   int64   `json:"skipped"`
	Running   int64   `json:"running"`
	Retried   int64   `json:"retried"`
	PerSecond float64 `json:"per_second"`
	LeftS     float64 `json:"left_s,omitempty"`        // left out while it is unknown
	Max       int     `json:"shared_max,omitempty"`    // left out without --shared
	Others    *int    `json:"shared_others,omitempty"` // the same
}

func jsonLine(name string, now time.Time, s Snapshot, e Estimate) string {
	ev := event{
		Event: name, Time: now.UTC().Format(time.RFC3339Nano), Done: s.Done(), Total: s.Total, Succeeded: s.Succeeded,
		Failed: s.Failed, Skipped: s.Skipped, Running: s.Running, Retried: s.Retried,
		PerSecond: float64(int64(e.PerSecond*1000)) / 1000, LeftS: float64(e.Left.Milliseconds()) / 1000,
		Max: s.Shared.Max,
	}
	if ev.Max > 0 {
		ev.Others = &s.Shared.Others
	}
	line, err := json.Marshal(ev)
	if err != nil {
		panic(err) // numbers and a time; a failure is a bug here
	}
	return string(line) + "\n"
}

// style is the look of a bar.
type style struct {
	full, empty string
	red, plain  string // around the number of failed jobs
}

// barMin and barMax are the limits for the bar itself, in columns.
const (
	barMin = 8
	barMax = 40
)

// barLine returns a line of at most width columns. It omits the parts that do not fit,
// the least informative first.
func barLine(s Snapshot, e Estimate, width int, look style) string {
	parts := []string{of(s) + percent(s)}
	if s.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", s.Failed))
	}
	if e.Left > 0 {
		parts = append(parts, ClockText(e.Left)+" left")
	}
	parts = append(parts, rate(e.PerSecond), fmt.Sprintf("%d running", s.Running))
	if s.Shared.Waits {
		parts = append(parts, s.Shared.held())
	}
	for len(parts) > 1 && len(strings.Join(parts, "  ")) > width {
		parts = parts[:len(parts)-1]
	}
	text := strings.Join(parts, "  ")
	if len(text) > width {
		text = text[:max(width, 0)]
	}
	room := min(width-len(text)-2, barMax)
	if s.Failed > 0 {
		failed := fmt.Sprintf("%d failed", s.Failed)
		text = strings.Replace(text, failed, look.red+failed+look.plain, 1)
	}
	share, ok := s.Share()
	if !ok || room < barMin {
		return text
	}
	full := int(share * float64(room))
	return strings.Repeat(look.full, full) + strings.Repeat(look.empty, room-full) + "  " + text
}
