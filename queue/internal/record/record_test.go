package record_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// again returns the row after encoding and decoding.
func again(t *testing.T, row *record.Row) record.Row {
	t.Helper()
	got, err := record.Decode(record.Append(nil, row))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// same fails the test if two rows are not equal in every field.
func same(t *testing.T, got, want record.Row) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("the row is\n%+v, and should be\n%+v", got, want)
	}
}

// headerOf returns the header of a row.
func headerOf(r *record.Row) record.Header {
	return record.Header{
		ID: r.ID, Queue: r.Queue, Kind: r.Kind, Key: r.Key, Group: r.Group, Unique: r.Unique, Seq: r.Seq,
		State: r.State, Tier: r.Tier, Order: r.Order, Failures: r.Failures, Crashes: r.Crashes,
		RunAt: r.RunAt, Deadline: r.Deadline, Submitted: r.Submitted,
		Changed: r.Changed, Batch: r.Batch, AfterBatch: r.AfterBatch, After: r.After, AfterAny: r.AfterAny,
	}
}

func TestDecodeReadsWhatAppendWrites(t *testing.T) {
	same(t, again(t, &record.Row{}), record.Row{})
	same(t, again(t, typical()), *typical())
	same(t, again(t, full()), *full())
}

func TestAppendAppends(t *testing.T) {
	alone := record.Append(nil, typical())
	if got := record.Append([]byte("before"), typical()); string(got) != "before"+string(alone) {
		t.Errorf("appended to something, the row is %x, and should be %x", got, alone)
	}
}

func TestEqualRowsAreEqualBytes(t *testing.T) {
	want := record.Append(nil, full())
	for range 20 { // the iteration order of a map varies
		if got := record.Append(nil, full()); !bytes.Equal(got, want) {
			t.Fatalf("the row is %x, and was %x", got, want)
		}
	}
}

func TestPeekReadsTheHeader(t *testing.T) {
	for _, row := range []*record.Row{{}, typical(), full()} {
		got, err := record.Peek(record.Append(nil, row))
		if want := headerOf(row); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the header is\n%+v, %v, and should be\n%+v", got, err, want)
		}
	}
}

// Holds and the end of the lease are not encoded: a store computes them when it is
// opened.
func TestHoldsAndTheEndOfTheLeaseAreNotWritten(t *testing.T) {
	row := typical()
	row.Holds = []queue.Hold{{Code: queue.HoldKey}}
	row.Lease.Until = row.Submitted.Add(time.Minute)
	same(t, again(t, row), *typical())
}

func TestEmptyComesBackAsNil(t *testing.T) {
	row := typical()
	row.Payload, row.Checkpoint, row.Result = []byte{}, []byte{}, []byte{}
	row.After, row.Steps, row.Labels = []queue.ID{}, []queue.Step{}, map[string]string{}
	want := typical()
	want.Payload, want.Steps = nil, nil
	same(t, again(t, row), *want)
}

func TestEmptyElementsCount(t *testing.T) {
	row := typical()
	row.Steps = make([]queue.Step, 3)
	row.Labels = map[string]string{"": ""}
	row.After = make([]queue.ID, 2)
	same(t, again(t, row), *row)
}

// The count of an element's bytes has one byte or more; close must make room for it.
func TestLongElements(t *testing.T) {
	for _, n := range []int{100, 124, 125, 126, 127, 128, 129, 16_381, 16_382, 100_000} {
		row := typical()
		text := strings.Repeat("x", n)
		row.Steps = []queue.Step{{Detail: text}, {By: text}, {}}
		row.Labels = map[string]string{"a": text, text: "b", "c": ""}
		same(t, again(t, row), *row)
	}
}

func TestTimes(t *testing.T) {
	zone := time.FixedZone("", 3600)
	tests := []struct {
		name     string
		at, want time.Time
	}{
		{"none", time.Time{}, time.Time{}},
		{"1970", time.Unix(0, 0).UTC(), time.Unix(0, 0).UTC()},
		{"before 1970", time.Unix(-1, 1).UTC(), time.Unix(-1, 1).UTC()},
		{"elsewhere", time.Unix(1e9, 7).In(zone), time.Unix(1e9, 7).UTC()},
		{"the first", time.Unix(0, math.MinInt64).UTC(), time.Unix(0, math.MinInt64).UTC()},
		{"before that", time.Unix(0, math.MinInt64).Add(-1), time.Unix(0, math.MinInt64).UTC()},
		{"long before", time.Time{}.Add(1), time.Unix(0, math.MinInt64).UTC()},
		{"the last", time.Unix(0, math.MaxInt64).UTC(), time.Unix(0, math.MaxInt64).UTC()},
		{"after that", time.Unix(0, math.MaxInt64).Add(1), time.Unix(0, math.MaxInt64).UTC()},
		{"long after", time.Date(9999, 12, 31, 0, 0, 0, 0, zone), time.Unix(0, math.MaxInt64).UTC()},
		{"never", time.Unix(math.MaxInt64, 0), time.Unix(0, math.MaxInt64).UTC()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			at := func(t time.Time) (row record.Row) {
				row.Deadline, row.Steps = t, []queue.Step{{At: t}}
				return row
			}
			row, want := at(test.at), at(test.want)
			same(t, again(t, &row), want)
		})
	}
}

// The caller of Decode and Peek may reuse the bytes.
func TestDecodeSharesNothing(t *testing.T) {
	b := record.Append(nil, full())
	row, err := record.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	header, err := record.Peek(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	same(t, row, *full())
	if want := headerOf(full()); !reflect.DeepEqual(header, want) {
		t.Errorf("the header has become\n%+v, and should be\n%+v", header, want)
	}
}

// Reading into a used header gives the same header as reading into a zero one.
func TestReadAgain(t *testing.T) {
	var header record.Header
	for _, row := range []*record.Row{full(), typical(), {}, typical(), full()} {
		if err := header.Read(record.Append(nil, row)); err != nil {
			t.Fatal(err)
		}
		if want := headerOf(row); !reflect.DeepEqual(header, want) {
			t.Errorf("the header is\n%+v, and should be\n%+v", header, want)
		}
	}
	b := record.Append(nil, typical())
	if n := testing.AllocsPerRun(100, func() { _ = header.Read(b) }); n != 0 {
		t.Errorf("reading the same again allocates %v times", n)
	}
	if err := header.Read(nil); err == nil || header.Queue != "" {
		t.Errorf("error %v, header %v", err, header)
	}
}
