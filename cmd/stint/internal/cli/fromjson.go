package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue"
)

// lineJSON is a task in a line of JSON: the fields of [queue.Spec], and the command or
// the payload as stint ls --json prints them.
type lineJSON struct {
	queue.Spec
	Command       *lineCommand    `json:"command"`
	Payload       json.RawMessage `json:"payload"`
	PayloadBase64 []byte          `json:"payload_base64"`
}

type lineCommand struct {
	Script string   `json:"script"`
	Args   []string `json:"args"`
	Dir    string   `json:"dir"`
	Env    []string `json:"env"` // NAME=value
	Stdin  []byte   `json:"stdin_base64"`
}

// lineField describes a field of [lineJSON] for errors.
type lineField struct {
	name    string // with the names of the objects that contain it
	takes   string
	example string // in JSON
}

const (
	aString   = "a string"
	aTime     = "a time in RFC 3339"
	anID      = "the ID of a task"
	idList    = "a list of IDs of tasks"
	nanos     = "a whole number of nanoseconds"
	count     = "a whole number"
	inBase64  = "bytes in base64"
	timeInRFC = `"2026-11-21T06:00:00Z"`
	someID    = `"01890a5d-ac96-774b-bcce-b302099a8057"`
	aMinute   = "60000000000"
)

// lineFieldsTable has all fields; those of an object precede the object.
var lineFieldsTable = []lineField{
	{"command.script", aString, `"make | tee log"`},
	{"command.args", "a list of strings", `["make", "all"]`},
	{"command.dir", "the path of a directory", `"/srv/data"`},
	{"command.env", "a list of strings NAME=value", `["LANG=C"]`},
	{"command.stdin_base64", inBase64, `"aGVsbG8K"`},
	{"command", "an object", `{"args": ["make", "all"]}`},
	{"kind", aString, `"email"`},
	{"payload", "any JSON", `{"to": "gopher"}`},
	{"payload_base64", inBase64, `"aGVsbG8K"`},
	{"queue", aString, `"nightly"`},
	{"tier", "a string, the name of a tier or -3 to 3", `"high"`},
	{"key", aString, `"tenant-7"`},
	{"group", aString, `"deploy"`},
	{"unique", aString, `"report-7"`},
	{"unique_for_ns", nanos, aMinute},
	{"after", idList, "[" + someID + "]"},
	{"after_any", idList, "[" + someID + "]"},
	{"batch", anID, someID},
	{"after_batch", anID, someID},
	{"run_at", aTime, timeInRFC},
	{"deadline", aTime, timeInRFC},
	{"timeout_ns", nanos, aMinute},
	{"max_attempts", count, "3"},
	{"max_crashes", count, "3"},
	{"labels", "an object with strings as values", `{"tenant": "7"}`},
	{"trace", "a string, a W3C traceparent", `"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`},
}

// commandHint is for a line that was meant as a command.
const commandHint = "a command that begins with { needs a space before it"

// plainJSONError replaces the error of the decoder by one that names the field and what it
// takes.
func plainJSONError(text []byte, err error) error {
	if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return fmt.Errorf("unknown field %s: docs/serve.md lists the fields, under Many commands", name)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the line ends before the object does")
	}
	if _, isSyntax := errors.AsType[*json.SyntaxError](err); isSyntax {
		return fmt.Errorf("%w; %s", err, commandHint)
	}
	if field, found := wrongField(text); found {
		return fmt.Errorf("the field %s takes %s, as in %s", field.name, field.takes, field.example)
	}
	return err
}

// wrongField returns the first field of lineFieldsTable whose value in an object cannot
// be decoded. The error of the decoder does not always name the field: that of a time does
// not.
func wrongField(text []byte) (field lineField, found bool) {
	for _, field := range lineFieldsTable {
		path := strings.Split(field.name, ".")
		value, given := valueAt(text, path)
		if !given {
			continue
		}
		for _, name := range slices.Backward(path) {
			value = fmt.Appendf(nil, "{%q:%s}", name, value)
		}
		if json.Unmarshal(value, new(lineJSON)) != nil {
			return field, true
		}
	}
	return field, false
}

// valueAt returns the value under a path of names in an object. Like the decoder, it
// ignores the letter case of names.
func valueAt(object json.RawMessage, path []string) (value json.RawMessage, found bool) {
	if len(path) == 0 {
		return object, true
	}
	var fields map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(object)).Decode(&fields); err != nil {
		return nil, false
	}
	for name, value := range fields {
		if strings.EqualFold(name, path[0]) {
			return valueAt(value, path[1:])
		}
	}
	return nil, false
}

// parseJSON parses a line that is a task as JSON.
func (l *taskLines) parseJSON(text []byte, base queue.Spec) (spec queue.Spec, err error) {
	line := lineJSON{Spec: base}
	line.Kind = ""                                         // there may be a command instead
	line.Labels, line.After, line.AfterAny = nil, nil, nil // not shared with other lines
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&line); err != nil {
		return spec, fmt.Errorf("as JSON: %w", plainJSONError(text, err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return spec, errors.New("as JSON: there is data after the object; " + commandHint)
	}
	if spec = line.Spec; spec.Labels == nil {
		spec.Labels = base.Labels
	}
	if spec.After == nil {
		spec.After = base.After
	}
	if spec.AfterAny == nil {
		spec.AfterAny = base.AfterAny
	}
	if line.Command != nil {
		if kind := cmp.Or(spec.Kind, serve.Kind); kind != serve.Kind || line.Payload != nil || line.PayloadBase64 != nil {
			return spec, fmt.Errorf("a task with a command has no payload, and its kind is %s", serve.Kind)
		}
		spec.Kind = serve.Kind
		spec.Payload, err = l.payload(line.Command, line.Command.Args)
		return spec, err
	}
	spec.Kind = cmp.Or(spec.Kind, base.Kind)
	switch {
	case spec.Kind == serve.Kind:
		return spec, errors.New(`a task of kind command needs a "command" with a "script" or "args"`)
	case line.Payload != nil && line.PayloadBase64 != nil:
		return spec, errors.New("it has both payload and payload_base64: use one of them")
	}
	spec.Payload = append(line.PayloadBase64, line.Payload...)
	return spec, nil
}
