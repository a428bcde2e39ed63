package record_test

import (
	"slices"
	"testing"

	"github.com/stintgo/stint/queue/internal/record"
)

// A row that shares memory equals one that does not.
func TestShareIsDecode(t *testing.T) {
	var known record.Header
	var row record.Row
	for _, want := range []*record.Row{full(), typical(), {}, typical(), full()} {
		b := record.Append(nil, want)
		if err := row.Share(b, &known); err != nil {
			t.Fatal(err)
		}
		same(t, row, *want)
		if known.Queue != want.Queue || known.Kind != want.Kind || known.Key != want.Key {
			t.Errorf("the names that are known are not those of %+v", want)
		}
	}
	if err := row.Share([]byte("garbage"), &known); err == nil || row.ID != (record.Row{}).ID || row.Steps != nil {
		t.Errorf("error %v, row %+v", err, row)
	}
}

// Appending to a shared value does not overwrite the bytes that follow it in the row.
func TestShareDoesNotReachFurther(t *testing.T) {
	b := record.Append(nil, full())
	before := slices.Clone(b)
	var row record.Row
	if err := row.Share(b, &record.Header{}); err != nil {
		t.Fatal(err)
	}
	_ = append(row.Payload, "more"...)
	_ = append(row.Result, "more"...)
	if !slices.Equal(b, before) {
		t.Error("appending to a payload changes the row")
	}
}
