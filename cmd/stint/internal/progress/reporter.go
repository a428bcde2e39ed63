package progress

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// Mode is a way of showing progress.
type Mode string

// The modes.
const (
	ModeAuto  Mode = "auto" // a bar on a terminal, plain lines elsewhere
	ModeBar   Mode = "bar"
	ModePlain Mode = "plain"
	ModeJSON  Mode = "json"
	ModeNone  Mode = "none"
)

// ParseMode parses the name of a mode.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case ModeAuto, ModeBar, ModePlain, ModeJSON, ModeNone:
		return m, nil
	}
	return "", fmt.Errorf("progress %q: use auto, bar, plain, json or none", text)
}

// every returns the interval between two outputs of a mode. Plain lines are for logs that
// are read much later: a short run prints none.
func (m Mode) every() time.Duration {
	switch m {
	case ModeBar:
		return 100 * time.Millisecond
	case ModeJSON:
		return time.Second
	default:
		return 10 * time.Second
	}
}

// Reporter shows a meter's progress during a run.
type Reporter struct {
	Mode  Mode // not ModeAuto
	Meter *Meter
	Bar   *Bar      // for ModeBar
	W     io.Writer // for lines
}

// Run shows progress until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	if r.Mode == ModeNone {
		return
	}
	ticker := time.NewTicker(r.Mode.every())
	defer ticker.Stop()
	var pace speed
	pace.observe(clock.Now(), 0)
	for {
		select {
		case at := <-ticker.C:
			s := r.Meter.Snapshot()
			r.show("progress", at, s, pace.estimate(at, s))
		case <-ctx.Done():
			r.end(&pace)
			return
		}
	}
}

func (r *Reporter) show(name string, now time.Time, s Snapshot, e Estimate) {
	switch r.Mode {
	case ModeBar:
		r.Bar.draw(s, e)
	case ModeJSON:
		_, _ = io.WriteString(r.W, jsonLine(name, now, s, e))
	default:
		_, _ = io.WriteString(r.W, plainLine(s, e))
	}
}

// end removes the bar, or prints the final counts as JSON. The last line of a log is the
// summary of the run.
func (r *Reporter) end(pace *speed) {
	switch r.Mode {
	case ModeBar:
		r.Bar.remove()
	case ModeJSON:
		at, s := clock.Now(), r.Meter.Snapshot()
		r.show("end", at, s, pace.estimate(at, s))
	default:
	}
}
