package wire

import "reflect"

// FormatOf returns the format of the type of v.
func FormatOf(v any) string {
	p := &plans{byType: make(map[reflect.Type]*plan)}
	return p.add(reflect.TypeOf(v)).format
}
