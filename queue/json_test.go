package queue_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"regexp"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
)

// contract is what the calls of a store are made of.
func contract() []any {
	return []any{
		&queue.NewTask{}, &queue.Receipt{}, &queue.Claim{}, &queue.Claimed{}, &queue.Outcome{}, &queue.Worker{},
		&queue.Heartbeat{}, &queue.Answer{}, &queue.Command{}, &queue.Filter{}, &queue.Page{}, &queue.Task{}, &queue.Reason{},
		&queue.Stats{}, &queue.Settings{}, &queue.Event{}, &queue.ScheduleState{}, &queue.Reschedule{},
	}
}

// TestModel_ContractInJSON shows that what stores take and answer means the same
// after a way through JSON: no field is left out, and none gets lost in one that
// has the same name.
func TestModel_ContractInJSON(t *testing.T) {
	rnd := seeded.Rand(t)
	for range 200 {
		for _, v := range contract() {
			fill(rnd, reflect.ValueOf(v).Elem())
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatalf("%T: %v", v, err)
			}
			got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			if err := json.Unmarshal(text, got); err != nil {
				t.Fatalf("%T: %v\n%s", v, err, text)
			}
			if !reflect.DeepEqual(v, got) {
				t.Fatalf("%T is\n%+v, and after a way through JSON\n%+v\n%s", v, v, got, text)
			}
		}
	}
}

// TestC4_NoIDsInJSON shows that a filter with an empty list of IDs is another one than a
// filter without a list, also after a way through JSON.
func TestC4_NoIDsInJSON(t *testing.T) {
	for want, f := range map[string]queue.Filter{
		`{}`: {}, `{"ids":[]}`: {IDs: []queue.ID{}}, `{"ids":[],"queue":"q"}`: {IDs: []queue.ID{}, Queue: "q"},
	} {
		text, err := json.Marshal(f)
		if err != nil || string(text) != want {
			t.Errorf("%#v is %s, error %v; want %s", f, text, err, want)
		}
		var got queue.Filter
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%s is read as %#v, error %v; want %#v", text, got, err, f)
		}
	}
}

// fill makes up a value that the contract allows.
func fill(rnd *rand.Rand, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(rnd.Int64N(1<<33), rnd.Int64N(1e9)).UTC()))
		return
	case queue.State:
		v.SetUint(rnd.Uint64N(9))
		return
	case queue.Trigger:
		v.SetUint(1 + rnd.Uint64N(17))
		return
	case queue.Order:
		v.Set(reflect.ValueOf([]queue.Order{queue.OrderPause, queue.OrderCancel, queue.OrderEdit}[rnd.IntN(3)]))
		return
	case queue.OutcomeKind:
		v.Set(reflect.ValueOf([]queue.OutcomeKind{queue.OutcomeSuccess, queue.OutcomeRelease}[rnd.IntN(2)]))
		return
	case queue.StopReason:
		v.Set(reflect.ValueOf([]queue.StopReason{queue.StopLost, queue.StopCancel}[rnd.IntN(2)]))
		return
	case stint.Priority:
		v.SetInt(rnd.Int64N(stint.Tiers) + int64(stint.Lowest))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(rnd, field)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(rnd, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+rnd.IntN(3), 4))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(rnd, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + rnd.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(rnd, key)
			fill(rnd, value)
			v.SetMapIndex(key, value)
		}
	default:
		fillBasic(rnd, v)
	}
}

func fillBasic(rnd *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"a", "ü�\n", `\ufffd<">`, "\u2028"}[rnd.IntN(4)])
	case reflect.Bool:
		v.SetBool(rnd.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(rnd.ExpFloat64())
	default:
		if v.CanInt() {
			v.SetInt(int64(rnd.Uint64() >> (65 - v.Type().Bits() + rnd.IntN(8))))
		} else {
			v.SetUint(rnd.Uint64() >> (64 - v.Type().Bits()))
		}
	}
}

// TestC4_FieldsInJSON holds the names of fields against what they are
// everywhere: small letters, and the unit of what is a time.
func TestC4_FieldsInJSON(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*(,(omitempty|omitzero))?$`)
	seen := make(map[reflect.Type]bool)
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Pointer, reflect.Map, reflect.Array:
			walk(typ.Elem())
			return
		default:
		}
		if typ.Kind() != reflect.Struct || seen[typ] || typ == reflect.TypeFor[time.Time]() {
			return
		}
		seen[typ] = true
		for f := range typ.Fields() {
			tag := f.Tag.Get("json")
			if !f.Anonymous && !name.MatchString(tag) {
				t.Errorf("%s.%s is %q in JSON", typ, f.Name, tag)
			}
			if f.Type == reflect.TypeFor[time.Duration]() && !regexp.MustCompile(`_ns\b`).MatchString(tag) {
				t.Errorf("%s.%s is %q in JSON, which does not say that it counts nanoseconds", typ, f.Name, tag)
			}
			walk(f.Type)
		}
	}
	for _, v := range contract() {
		walk(reflect.TypeOf(v))
	}
	if len(seen) < len(contract()) {
		t.Errorf("only %d types were seen", len(seen))
	}
}

func TestC6_TokenText(t *testing.T) {
	text, err := json.Marshal(queue.Lease{Token: 1<<64 - 1})
	want := `{"worker":"","token":"18446744073709551615","until":"0001-01-01T00:00:00Z"}`
	if err != nil || string(text) != want {
		t.Errorf("a lease is %s, %v; want %s", text, err, want)
	}
	for _, bad := range []string{"", "-1", "0x1", "1e3", "18446744073709551616", "1 "} {
		var token queue.Token
		if err := token.UnmarshalText([]byte(bad)); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("the token %q is read as %d, %v", bad, token, err)
		}
	}
}
