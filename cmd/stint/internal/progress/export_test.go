package progress

import "time"

// BarLine, PlainLine and JSONLine show what the modes write.
func BarLine(s Snapshot, e Estimate, width int) string {
	return barLine(s, e, width, style{full: "#", empty: "."})
}

// PlainLine is a line of ModePlain.
func PlainLine(s Snapshot, e Estimate) string { return plainLine(s, e) }

// JSONLine is a line of ModeJSON.
func JSONLine(now time.Time, s Snapshot, e Estimate) string { return jsonLine("progress", now, s, e) }

// Speed is the estimator.
type Speed struct{ speed }

// Estimate looks at a snapshot of now.
func (s *Speed) Estimate(now time.Time, snap Snapshot) Estimate { return s.estimate(now, snap) }
