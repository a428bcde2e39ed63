package wire

import (
	"encoding/json"
	"fmt"

	"github.com/stintgo/stint/queue"
)

// HasList reports whether in is the body of a call with a list of tasks, outcomes or
// heartbeats, which may be much larger than one of them.
func HasList(in any) bool { return membersOf(in) != nil }

// Decode decodes the body of a call into in, which is a pointer. It decodes lists item by
// item, so that the text of only one item is in memory. A member that in does not have is
// an error: it asks for something that would not be done.
func Decode(d *json.Decoder, in any) error {
	d.DisallowUnknownFields()
	members := membersOf(in)
	if members == nil {
		return d.Decode(in)
	}
	if err := expect(d, '{'); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		decode := members[name.(string)] // the token before a colon is a string, or an error
		if decode == nil {
			return fmt.Errorf("unknown field %q", name)
		}
		if err := decode(d); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// member decodes the value of a member.
type member func(d *json.Decoder) error

// membersOf returns the members of a body that has a list; nil for other bodies.
func membersOf(in any) map[string]member {
	switch in := in.(type) {
	case *SubmitCall:
		return map[string]member{"tasks": list(&in.Tasks)}
	case *SettleCall:
		return map[string]member{"outcomes": list(&in.Outcomes)}
	case *HeartbeatCall:
		return map[string]member{"worker": value(&in.Worker), "heartbeats": list(&in.Heartbeats)}
	case *queue.Reschedule:
		return map[string]member{
			"name": value(&in.Name), "was": value(&in.Was), "to": value(&in.To), "tasks": list(&in.Tasks),
		}
	}
	return nil
}

func value(to any) member { return func(d *json.Decoder) error { return d.Decode(to) } }

func list[T any](to *[]T) member {
	return func(d *json.Decoder) error {
		*to = nil
		begin, err := d.Token()
		if err != nil || begin == nil { // null
			return err
		}
		if begin != json.Delim('[') {
			return fmt.Errorf("%v where a list should be", begin)
		}
		*to = []T{}
		for d.More() {
			var item T
			if err := d.Decode(&item); err != nil {
				return err
			}
			*to = append(*to, item)
		}
		_, err = d.Token()
		return err
	}
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v where %v should be", got, want)
	}
	return err
}
