package record_test

import (
	"testing"

	"github.com/stintgo/stint/queue/internal/record"
)

// The counts of allocations are exact, so that an additional one fails the test: a store
// reads and writes rows for every step of every task.
func TestAllocations(t *testing.T) {
	task := typical()
	b := record.Append(nil, task)
	var (
		row    record.Row
		header record.Header
	)
	tests := []struct {
		name string
		want float64
		do   func()
	}{
		{"append", 0, func() { b = record.Append(b[:0], task) }},
		{"peek", 3, func() { _, _ = record.Peek(b) }},      // queue, kind, key
		{"decode", 7, func() { _, _ = record.Decode(b) }},  // and payload, steps, the worker twice
		{"share", 3, func() { _ = row.Share(b, &header) }}, // steps, the worker twice
	}
	for _, test := range tests {
		if got := testing.AllocsPerRun(100, test.do); got != test.want {
			t.Errorf("%s allocates %v times, and should %v times", test.name, got, test.want)
		}
	}
}
