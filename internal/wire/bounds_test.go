package wire_test

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// list returns the JSON of an array.
func list(item string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func TestC6_BodiesAreBounded(t *testing.T) {
	const itemMost = 1000
	half := strings.Repeat("x", itemMost/2)
	for name, test := range map[string]struct {
		body string
		ok   bool
	}{
		"a small call":               {`{"tasks":[{"kind":"k","payload":"AA=="}]}`, true},
		"as many items as may be":    {`{"tasks":` + list("{}", wire.ItemsMost) + `}`, true},
		"one item more":              {`{"tasks":` + list("{}", wire.ItemsMost+1) + `}`, false},
		"many items in an item":      {`{"tasks":[{"a":` + list("0", wire.ItemsMost+1) + `}]}`, false},
		"many members":               {"{" + strings.Repeat(`"a":0,`, wire.ItemsMost) + `"a":0}`, false},
		"many values":                {list(list("0", wire.ValuesMost/200), 202), false},
		"as deep as may be":          {strings.Repeat("[", wire.DepthMost) + strings.Repeat("]", wire.DepthMost), true},
		"deeper":                     {strings.Repeat("[", wire.DepthMost+1), false},
		"items of the largest size":  {`{"tasks":` + list(`{"a":"`+strings.Repeat("x", 980)+`"}`, 100) + `}`, true},
		"a large item":               {`{"tasks":[{"a":"` + strings.Repeat("x", 1000) + `"}]}`, false},
		"a large item of two halves": {`{"tasks":[{"a":"` + half + `","b":"` + half + `"}]}`, false},
		"a large member":             {`{"filter":{"a":"` + half + `","b":"` + half + `"}}`, false},
		"large members":              {`{"a":"` + half + half[20:] + `","b":"` + half + `"}`, true},
		"a text that looks like it":  {`{"a":"\\\"` + strings.Repeat("[", 100) + strings.Repeat(",", 100) + `"}`, true},
		"closed too often":           {"]]]]]]{}", true},
		// Minutes, if each escape looks for the end of the string.
		"many escapes": {`{"a":"` + strings.Repeat(`\n`, 8<<20), true},
	} {
		for how, r := range map[string]io.Reader{
			"at once": strings.NewReader(test.body), "byte by byte": iotest.OneByteReader(strings.NewReader(test.body)),
		} {
			if strings.HasPrefix(name, "many") && how != "at once" {
				continue
			}
			size := int64(itemMost)
			if strings.Contains(name, "many") {
				size = 1 << 30
			}
			got, err := io.ReadAll(wire.Bounded(r, size))
			switch {
			case test.ok && (err != nil || string(got) != test.body):
				t.Errorf("%s, %s: %d of %d bytes, %v", name, how, len(got), len(test.body), err)
			case !test.ok && !errors.Is(err, queue.ErrTooLarge):
				t.Errorf("%s, %s: %v", name, how, err)
			}
		}
	}
}

// FuzzDecode compares decoding a list item by item with decoding it as a whole.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"tasks":[{"kind":"k","labels":{"a":"b"}},{}]}`, `{"tasks":null}`, `{"tasks":[]}`, `{}`, `[]`, `null`,
		`{"tasks":{}}`, `{"tasks":[{"nothing":1}]}`, `{"nothing":[]}`, `{"tasks":[1]}`,
		`{"tasks":[{}],"tasks":[{"kind":"k"}]}`, `{"tasks":[{}`, `{"tasks":"x"}`, `{1:2}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var parts, whole wire.SubmitCall
		err := wire.Decode(json.NewDecoder(strings.NewReader(body)), &parts)
		if err != nil {
			return // Decode may be stricter: it refuses null and names in another case
		}
		d := json.NewDecoder(strings.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&whole); err != nil {
			t.Fatalf("%q is accepted in parts, and as a whole it is %v", body, err)
		}
		if strings.Count(body, "tasks") <= 1 && !reflect.DeepEqual(whole, parts) {
			t.Errorf("%q is %+v in parts, and %+v as a whole", body, parts, whole)
		}
	})
}

// TestC6_BodiesInParts: the server decodes what the client encodes, for each call with a
// list.
func TestC6_BodiesInParts(t *testing.T) {
	id := queue.ID{1}
	for _, in := range []any{
		&wire.SubmitCall{Tasks: []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "k", Payload: []byte("x")}}, {}}},
		&wire.SubmitCall{},
		&wire.SettleCall{Outcomes: []queue.Outcome{{ID: id, Token: 7, Kind: queue.OutcomeSuccess, Result: []byte("x")}}},
		&wire.HeartbeatCall{
			Worker: queue.Worker{Name: "w", Kinds: map[string][]string{"q": {"k"}}}, Heartbeats: []queue.Heartbeat{{ID: id}},
		},
		&queue.Reschedule{
			Name: "s", Was: id, To: &queue.ScheduleState{Schedule: queue.Schedule{Name: "s"}}, Tasks: []queue.NewTask{{ID: id}},
		},
		&queue.Reschedule{Name: "s"},
	} {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		switch in.(type) {
		case *wire.SubmitCall:
			got = new(wire.SubmitCall)
		case *wire.SettleCall:
			got = new(wire.SettleCall)
		case *wire.HeartbeatCall:
			got = new(wire.HeartbeatCall)
		default:
			got = new(queue.Reschedule)
		}
		if err := wire.Decode(json.NewDecoder(strings.NewReader(string(text))), got); err != nil || !wire.HasList(got) {
			t.Errorf("%s: %v", text, err)
		}
		if !reflect.DeepEqual(in, got) {
			t.Errorf("%s is read as %+v", text, got)
		}
	}
}
