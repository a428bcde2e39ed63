package cli //nolint:testpackage // it compares a table with the fields that the decoder reads

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// lineFieldsTable has every field of a line of stint submit --from, with a valid example.
func TestC1_LineFields(t *testing.T) {
	fields := make(map[string]bool)
	for _, f := range lineFieldsTable {
		fields[f.name] = true
		text := f.example
		path := strings.Split(f.name, ".")
		for i := range path {
			text = `{"` + path[len(path)-1-i] + `":` + text + `}`
		}
		if err := json.Unmarshal([]byte(text), new(lineJSON)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	n := 0
	var visit func(prefix string, typ reflect.Type)
	visit = func(prefix string, typ reflect.Type) {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous {
				visit(prefix, f.Type)
				continue
			}
			if n++; !fields[prefix+name] {
				t.Errorf("the table has no field %s%s", prefix, name)
			}
			if f.Type == reflect.TypeFor[*lineCommand]() {
				visit(prefix+name+".", f.Type.Elem())
			}
		}
	}
	visit("", reflect.TypeFor[lineJSON]())
	if duplicates := 1; n != len(fields)+duplicates { // payload is also a field of queue.Spec
		t.Errorf("lines have %d fields, and the table %d", n, len(fields))
	}
}
