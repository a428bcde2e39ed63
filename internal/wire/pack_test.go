package wire_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// packed are pointers to a value of each type that is packed, filled with random values.
func packed(r *rand.Rand) []any {
	all := []any{
		new(wire.SubmitCall), new(wire.Receipts), new(queue.Claim), new(queue.Claimed), new(wire.SettleCall),
		new(wire.Settled),
	}
	for _, v := range all {
		fill(r, reflect.ValueOf(v).Elem())
	}
	return all
}

// fill sets a value at random, with zero values among its parts.
func fill(r *rand.Rand, v reflect.Value) {
	const enough = 4
	switch kind := v.Kind(); {
	case v.Type() == reflect.TypeFor[time.Time]():
		at := time.Unix(r.Int64N(1e10), r.Int64N(1e9)).UTC()
		v.Set(reflect.ValueOf(at))
	case kind == reflect.Struct:
		for _, field := range v.Fields() {
			if r.IntN(enough) > 0 || field.Kind() == reflect.Uint8 { // 0 has no name in JSON
				fill(r, field)
			}
		}
	case kind == reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case kind == reflect.Int8 || kind == reflect.Uint8:
		fillName(r, v)
	case v.CanInt():
		v.SetInt(int64(r.Uint64()) >> r.IntN(64))
	case v.CanUint():
		v.SetUint(r.Uint64() >> r.IntN(64))
	case kind == reflect.String:
		v.SetString(strings.Repeat("aé", r.IntN(enough)))
	case kind == reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(r.IntN(256)))
		}
	case kind == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		b := make([]byte, 1+r.IntN(enough))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		v.SetBytes(b)
	case kind == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(enough), enough))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case kind == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + r.IntN(enough) {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, k)
			fill(r, e)
			v.SetMapIndex(k, e)
		}
	case kind == reflect.Pointer:
		if r.IntN(enough) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	default:
		panic("a value of type " + v.Type().String())
	}
}

// fillName sets a value that has a name in JSON.
func fillName(r *rand.Rand, v reflect.Value) {
	for {
		if v.CanInt() {
			v.SetInt(r.Int64N(8) - 4)
		} else {
			v.SetUint(uint64(r.IntN(16)))
		}
		text, err := json.Marshal(v.Interface())
		if err == nil && json.Unmarshal(text, v.Addr().Interface()) == nil {
			return
		}
	}
}

// TestC6_PackedIsAsJSON: a value that was packed is the same as one that was sent in JSON.
func TestC6_PackedIsAsJSON(t *testing.T) {
	r := seeded.Rand(t)
	for range 200 {
		for _, in := range packed(r) {
			b, err := wire.Pack(in)
			if err != nil {
				t.Fatal(err)
			}
			unpacked, fromJSON := reflect.New(reflect.TypeOf(in).Elem()), reflect.New(reflect.TypeOf(in).Elem())
			if err := wire.Unpack(b, unpacked.Interface(), int64(len(b))); err != nil {
				t.Fatalf("%+v packed: %v", in, err)
			}
			var text []byte
			if text, err = json.Marshal(in); err == nil {
				err = json.Unmarshal(text, fromJSON.Interface())
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(unpacked.Interface(), fromJSON.Interface()) {
				t.Fatalf("%s\nunpacked is %+v,\nfrom JSON  %+v", text, unpacked.Elem(), fromJSON.Elem())
			}
			for n := range b {
				cut := reflect.New(reflect.TypeOf(in).Elem())
				if err := wire.Unpack(b[:n], cut.Interface(), int64(n)); !errors.Is(err, queue.ErrInvalid) {
					t.Fatalf("%d of %d bytes: %v", n, len(b), err)
				}
			}
		}
	}
}

// TestC6_PackedNumbersHaveNames: a number that JSON refuses is not packed either.
func TestC6_PackedNumbersHaveNames(t *testing.T) {
	in := wire.SubmitCall{Tasks: []queue.NewTask{{Spec: queue.Spec{Options: queue.Options{Tier: 9}}}}}
	if _, err := wire.Pack(&in); !errors.Is(err, queue.ErrInvalid) || !errors.Is(err, stint.ErrPriority) {
		t.Errorf("tier 9 is %v", err)
	}
	// A server may have read it from the rows of a later version. Its client does not know it.
	answer := queue.Claimed{Tasks: []queue.Task{{State: 25}}}
	b, err := wire.Pack(&answer)
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.Unpack(b, &queue.Claimed{}, 1000); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("state 25 is unpacked: %v", err)
	}
}

// TestC6_PackedTimes: times are those that JSON has.
func TestC6_PackedTimes(t *testing.T) {
	for at, ok := range map[time.Time]bool{
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC): true, time.Date(9999, 12, 31, 23, 59, 59, 999, time.UTC): true,
		time.Date(-1, 12, 31, 23, 59, 59, 0, time.UTC): false, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC): false,
	} {
		in := queue.Claimed{Next: at}
		b, err := wire.Pack(&in)
		var back queue.Claimed
		unpacked := wire.Unpack(b, &back, 1000)
		if ok && (err != nil || unpacked != nil || !back.Next.Equal(at)) {
			t.Errorf("%s is packed as %s, %v, %v", at, back.Next, err, unpacked)
		}
		if !ok && (!errors.Is(err, queue.ErrInvalid) || !errors.Is(unpacked, queue.ErrInvalid)) {
			t.Errorf("%s is packed: %v, %v", at, err, unpacked)
		}
	}
}

// TestC11_PackedFormats: types that differ in anything that a packed value depends on are of
// different formats, so that programs of different versions do not misinterpret each other.
func TestC11_PackedFormats(t *testing.T) {
	type Nested struct{ A []string }
	seen := make(map[string]any)
	for _, v := range []any{
		struct{ A int }{},
		struct{ B int }{},
		struct{ A uint }{},
		struct{ A stint.Priority }{},
		struct{ A queue.State }{},
		struct{ A queue.Order }{},
		struct{ A, B int }{},
		struct{ A *int }{},
		struct{ A []int }{},
		struct{ A map[string]string }{},
		struct{ A queue.ID }{},
		struct{ A []byte }{},
		struct{ A string }{},
		struct{ A time.Time }{},
		struct{ A Nested }{},
		struct{ A []Nested }{},
		struct{ Nested }{},
		struct{ A bool }{},
		struct{ A [15]byte }{},
		struct{ A time.Duration }{},
		struct {
			A int `json:"a_ms"`
		}{},
	} {
		format := wire.FormatOf(v)
		if other := seen[format]; other != nil {
			t.Errorf("%T and %T are both %s", other, v, format)
		}
		seen[format] = v
	}
}

// FuzzUnpack: any bytes are a value, which can be packed, or are refused.
func FuzzUnpack(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 0))
	for i, v := range packed(r) {
		b, err := wire.Pack(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, b)
	}
	f.Add(0, []byte{1, 0xff, 0xff, 0x3f})                                     // a list that is cut off
	f.Add(0, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}) // all fields
	f.Fuzz(func(t *testing.T, which int, b []byte) {
		types := []any{
			new(wire.SubmitCall), new(wire.Receipts), new(queue.Claim), new(queue.Claimed), new(wire.SettleCall),
			new(wire.Settled),
		}
		v := types[uint(which)%uint(len(types))]
		if err := wire.Unpack(b, v, 1<<20); err != nil {
			if !errors.Is(err, queue.ErrInvalid) && !errors.Is(err, queue.ErrTooLarge) {
				t.Fatal(err)
			}
			return
		}
		again, err := wire.Pack(v)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(v).Elem())
		if err := wire.Unpack(again, back.Interface(), 1<<20); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back.Interface(), v) {
			t.Errorf("%+v is packed as %+v", v, back.Elem())
		}
	})
}

// TestC6_PackedBodiesAreBounded: the bounds of bodies in JSON hold for packed ones.
func TestC6_PackedBodiesAreBounded(t *testing.T) {
	list := func(n int, item string) string {
		return string(binary.AppendUvarint([]byte{1}, uint64(n)+1)) + strings.Repeat(item, n)
	}
	// A task with Spec, its second field, in which Options, the third, has After, the seventh.
	after := "\x02\x04" + string(binary.AppendUvarint(nil, 1<<6)) + string(binary.AppendUvarint(nil, 201)) +
		strings.Repeat("\x00", 200*16)
	const itemMost = 4000
	payload := "\x02\x02" + string(binary.AppendUvarint(nil, itemMost+1)) + strings.Repeat("x", itemMost)
	for name, test := range map[string]struct {
		body string
		want error
	}{
		"as many items as may be": {list(wire.ItemsMost, "\x00"), nil},
		"one item more":           {list(wire.ItemsMost+1, "\x00"), queue.ErrTooLarge},
		"items with IDs":          {list(5000, after), nil},
		"many values":             {list(5300, after), queue.ErrTooLarge},
		"a list without items":    {list(1000, "\x00")[:4], queue.ErrInvalid},
		"a large item":            {list(1, payload), queue.ErrTooLarge},
		"a large one after it":    {list(2, "")[:2] + after + payload, queue.ErrTooLarge},
		"bytes after it":          {list(1, "\x00") + "\x00", queue.ErrInvalid},
		"a field too many":        {"\x02", queue.ErrInvalid},
	} {
		var in wire.SubmitCall
		if err := wire.Unpack([]byte(test.body), &in, itemMost); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}
