package record_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue/internal/record"
)

// TestRandomRows fills all fields of a row by reflection, so that it fails if package
// queue gets a field that this package does not encode.
func TestRandomRows(t *testing.T) {
	r := seeded.Rand(t)
	for range 5000 {
		var row record.Row
		fill(r, reflect.ValueOf(&row).Elem())
		row.Holds, row.Lease.Until = nil, time.Time{}

		b := record.Append(nil, &row)
		got, err := record.Decode(b)
		if err != nil {
			t.Fatalf("%v: %+v", err, row)
		}
		same(t, got, row)
		header, err := record.Peek(b)
		if want := headerOf(&row); err != nil || !reflect.DeepEqual(header, want) {
			t.Fatalf("the header is\n%+v, %v, and should be\n%+v", header, err, want)
		}
	}
}

// fill sets v to a random value of its type, or to zero in half of the cases.
func fill(r *rand.Rand, v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		if r.IntN(2) == 0 {
			v.Set(reflect.ValueOf(time.Unix(0, int64(bits(r))).UTC()))
		}
		return
	}
	if v.Kind() == reflect.Struct {
		for _, field := range v.Fields() {
			fill(r, field)
		}
		return
	}
	if r.IntN(2) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(some(r)))
	case reflect.Int, reflect.Int8, reflect.Int64:
		v.SetInt(reflect.ValueOf(bits(r)).Convert(v.Type()).Int())
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(reflect.ValueOf(bits(r)).Convert(v.Type()).Uint())
	case reflect.Array:
		reflect.Copy(v, reflect.ValueOf(some(r)))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(some(r))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(4), 4))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{string(some(r)): "", "": string(some(r)), "a": "b"}))
	default:
		panic("there is a new type in a task, " + v.Type().String() + ": fill does not know it")
	}
}

// bits returns a number of up to 64 bits, so that varints of every length occur.
func bits(r *rand.Rand) uint64 { return r.Uint64() >> r.IntN(64) }

// some returns 1 to 300 bytes, whose count takes one byte or two.
func some(r *rand.Rand) []byte {
	b := make([]byte, 1+r.IntN(30)*r.IntN(11))
	for i := range b {
		b[i] = byte(r.Uint64())
	}
	return b
}
