package progress

import "time"

// BarLine, PlainLine and JSONLine return what the modes print.
func BarLine(s Snapshot, e Estimate, width int) string {
	return barLine(s, e, width, style{full: "#", empty: "."})
}

// PlainLine returns a line of ModePlain.
func PlainLine(s Snapshot, e Estimate) string { return plainLine(s, e) }

// JSONLine returns a line of ModeJSON.
func JSONLine(now time.Time, s Snapshot, e Estimate) string { return jsonLine("progress", now, s, e) }

// Speed is the estimator.
type Speed struct{ speed }

// Estimate returns the estimate for a snapshot at now.
func (s *Speed) Estimate(now time.Time, snap Snapshot) Estimate { return s.estimate(now, snap) }
