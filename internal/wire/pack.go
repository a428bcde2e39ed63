package wire

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// Submit, Claim and Settle, which are made for each task or each few, can be made with packed
// bodies: programs of the same types skip the names, base64 and text of JSON, which take longer than
// the decision about a task. A packed value has no names, and its fields are in the order of the
// types. So the path of the call has the hash of all names and types. A server whose types differ
// does not know the path and answers 404 with [UnknownCall], and one without packed calls 415 with
// [UnknownType]; the client then makes the call in JSON.
//
//	number   a varint; signed numbers in zigzag encoding
//	bool     a byte, 0 or 1
//	string   its length as a number, and its bytes
//	[n]byte  its bytes
//	time     seconds since 1970 in UTC as a signed number, nanoseconds as a number
//	list     0 for nil, otherwise its length and 1, and the elements; bytes and maps likewise
//	pointer  a byte, 0 for nil; otherwise 1 and the value
//	struct   a number whose bit i says that field i follows, and those fields: all that are not zero
//
// Varints are those of encoding/binary. Times are of the years 0 to 9999, as in JSON.

// encodingVersion is part of the format: it changes when the bytes of a packed value change although
// no type does.
const encodingVersion = 1

// packedPrefix is the beginning of the path of a call that is packed.
const packedPrefix = "/v2/packed/"

// Packed is the type of a packed body.
const Packed = "application/vnd.stint.packed"

// PackedPath returns the path of the call of path when it is packed. ok is false if that call is
// made in JSON only.
func PackedPath(path string) (packed string, ok bool) {
	switch path {
	case Submit, Claim, Settle:
		return packedPrefix + plansTable().format + strings.TrimPrefix(path, "/v2"), true
	}
	return "", false
}

// JSONPath returns the path in JSON of the call of a [PackedPath].
func JSONPath(packed string) string { return "/v2" + packed[strings.LastIndexByte(packed, '/'):] }

// IsPacked reports whether a path is that of a packed call.
func IsPacked(path string) bool { return strings.HasPrefix(path, packedPrefix) }

// Pack returns the packed form of the value that v points to: the body of a call that has a
// [PackedPath], or its answer. It fails with [queue.ErrInvalid] where JSON would fail too: for a
// number whose MarshalText fails, and a time that is not in the years 0 to 9999.
func Pack(v any) ([]byte, error) {
	from := reflect.ValueOf(v).Elem()
	p := &packer{}
	plansTable().of(from.Type()).pack(p, from)
	return p.b, p.err
}

// packer appends values to b.
type packer struct {
	b   []byte
	err error // of the first value that cannot be packed
}

func (p *packer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *packer) number(n uint64) { p.b = binary.AppendUvarint(p.b, n) }
func (p *packer) signed(n int64)  { p.b = binary.AppendVarint(p.b, n) }
func (p *packer) byte(c byte)     { p.b = append(p.b, c) }

// length appends 0 for nil, and otherwise the length and 1.
func (p *packer) length(v reflect.Value) {
	if v.IsNil() {
		p.byte(0)
		return
	}
	p.number(uint64(v.Len()) + 1)
}

// plansTable has the plans of all packed types.
var plansTable = sync.OnceValue(func() *plans {
	p := &plans{byType: make(map[reflect.Type]*plan)}
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, encodingVersion)
	for _, v := range []any{
		SubmitCall{}, Receipts{}, queue.Claim{}, queue.Claimed{}, SettleCall{}, Settled{},
	} {
		t := reflect.TypeOf(v)
		p.add(t)
		_, _ = fmt.Fprintln(sum, p.of(t).format)
	}
	const enough = 8 // bytes of the hash: formats are few
	p.format = hex.EncodeToString(sum.Sum(nil)[:enough])
	return p
})

// plans are the plans of types.
type plans struct {
	byType map[reflect.Type]*plan
	format string // identifies all types
}

// plan is how the values of a type are packed.
type plan struct {
	format string // identifies the type, with all that a packed value depends on
	pack   func(p *packer, v reflect.Value)
	unpack func(u *unpacker, v reflect.Value)
}

// of returns the plan of a type that has been added.
func (p *plans) of(t reflect.Type) *plan {
	known := p.byType[t]
	if known == nil {
		panic("wire: values of type " + t.String() + " are not packed")
	}
	return known
}

// add makes the plan of a type, and those of its parts.
func (p *plans) add(t reflect.Type) *plan {
	if known, begun := p.byType[t]; known != nil {
		return known
	} else if begun {
		panic("wire: type " + t.String() + " contains itself")
	}
	p.byType[t] = nil // begun
	made := p.plan(t)
	p.byType[t] = made
	return made
}

// plan makes the plan of a type.
func (p *plans) plan(t reflect.Type) *plan {
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[time.Time]():
		return &plan{"time", packTime, unpackTime}
	case kind == reflect.Bool:
		return &plan{t.String(), packBool, unpackBool}
	case kind == reflect.Int8 || kind == reflect.Uint8:
		return enumPlan(t)
	case kind >= reflect.Int && kind <= reflect.Int64 && !hasNames(t):
		return &plan{t.String(), packInt, unpackInt}
	case kind >= reflect.Uint && kind <= reflect.Uint64 && (!hasNames(t) || t == reflect.TypeFor[queue.Token]()):
		return &plan{t.String(), packUint, unpackUint}
	case kind == reflect.String:
		return &plan{t.String(), packString, unpackString}
	case kind == reflect.Array && t.Elem().Kind() == reflect.Uint8:
		return &plan{fmt.Sprint("bytes ", t.Len()), packArray, unpackArray}
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return &plan{"bytes", packBytes, unpackBytes}
	case kind == reflect.Slice:
		return listPlan(p.add(t.Elem()))
	case kind == reflect.Map && t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String:
		return mapPlan(p.add(t.Key()), p.add(t.Elem()))
	case kind == reflect.Pointer:
		return pointerPlan(p.add(t.Elem()))
	case kind == reflect.Struct:
		return p.structPlan(t)
	}
	panic("wire: values of type " + t.String() + " cannot be packed")
}

// timeLeast and timeMost limit the times that are packed, in seconds since 1970, to the years that JSON has.
const (
	timeLeast = -62167219200 // the beginning of the year 0
	timeMost  = 253402300799 // the last second of 9999
)

func packTime(p *packer, v reflect.Value) {
	t := v.Addr().Interface().(*time.Time)
	if sec := t.Unix(); sec < timeLeast || sec > timeMost {
		p.fail(fmt.Errorf("%w: %s is not in the years 0 to 9999", queue.ErrInvalid, t))
	}
	p.signed(t.Unix())
	p.number(uint64(t.Nanosecond()))
}

func packBool(p *packer, v reflect.Value) {
	if v.Bool() {
		p.byte(1)
		return
	}
	p.byte(0)
}

func packInt(p *packer, v reflect.Value)  { p.signed(v.Int()) }
func packUint(p *packer, v reflect.Value) { p.number(v.Uint()) }

func packString(p *packer, v reflect.Value) {
	p.number(uint64(v.Len()))
	p.b = append(p.b, v.String()...)
}

func packArray(p *packer, v reflect.Value) { p.b = append(p.b, v.Bytes()...) }

func packBytes(p *packer, v reflect.Value) {
	p.length(v)
	p.b = append(p.b, v.Bytes()...)
}

func listPlan(of *plan) *plan {
	return &plan{
		format: "list " + of.format,
		pack: func(p *packer, v reflect.Value) {
			p.length(v)
			for i := range v.Len() {
				of.pack(p, v.Index(i))
			}
		},
		unpack: func(u *unpacker, v reflect.Value) { u.list(v, of) },
	}
}

func mapPlan(key, elem *plan) *plan {
	return &plan{
		format: "map " + key.format + " " + elem.format,
		pack: func(p *packer, v reflect.Value) {
			p.length(v)
			for pairs := v.MapRange(); pairs.Next(); {
				key.pack(p, pairs.Key())
				elem.pack(p, pairs.Value())
			}
		},
		unpack: func(u *unpacker, v reflect.Value) { u.pairs(v, key, elem) },
	}
}

func pointerPlan(to *plan) *plan {
	return &plan{
		format: "pointer " + to.format,
		pack: func(p *packer, v reflect.Value) {
			if v.IsNil() {
				p.byte(0)
				return
			}
			p.byte(1)
			to.pack(p, v.Elem())
		},
		unpack: func(u *unpacker, v reflect.Value) {
			if u.flag() {
				v.Set(reflect.New(v.Type().Elem()))
				to.unpack(u, v.Elem())
			}
		},
	}
}

// hasNames reports whether the numbers of a type have names in JSON.
func hasNames(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// enumPlan makes the plan of small numbers. If they have names in JSON, only those with a name are
// unpacked, and the names are part of the format: another version may give a number another name. 0,
// an unset field, is always packed.
func enumPlan(t reflect.Type) *plan {
	numbers := &plan{t.String(), packUint, unpackUint}
	if t.Kind() == reflect.Int8 {
		numbers = &plan{t.String(), packInt, unpackInt}
	}
	if !hasNames(t) {
		return numbers
	}
	const least, most = -8, 31 // of the numbers that may have names: to try one takes a microsecond
	named := [most - least + 1]bool{-least: true}
	var names strings.Builder
	for n := least; n <= most; n++ {
		if name, ok := nameOf(t, n); ok {
			named[n-least] = true
			_, _ = fmt.Fprintf(&names, " %d %s", n, name)
		}
	}
	if _, ok := nameOf(t, most+1); ok {
		panic("wire: " + t.String() + " has more names than are packed")
	}
	hasName := func(v reflect.Value) bool {
		var n int
		if v.CanInt() {
			n = int(v.Int())
		} else {
			n = int(v.Uint())
		}
		return n >= least && n <= most && named[n-least]
	}
	return &plan{
		format: numbers.format + names.String(),
		pack: func(p *packer, v reflect.Value) {
			if !hasName(v) {
				if m, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
					if _, err := m.MarshalText(); err != nil {
						p.fail(fmt.Errorf("%w: %w", queue.ErrInvalid, err))
					}
				}
			}
			numbers.pack(p, v)
		},
		unpack: func(u *unpacker, v reflect.Value) {
			if numbers.unpack(u, v); !hasName(v) {
				u.fail("%v has no name", v)
			}
		},
	}
}

// nameOf returns the name of a number of a type in JSON, if it has one.
func nameOf(t reflect.Type, n int) (name string, ok bool) {
	v, back := reflect.New(t), reflect.New(t)
	switch e := v.Elem(); {
	case e.CanInt() && !e.OverflowInt(int64(n)):
		e.SetInt(int64(n))
	case e.CanUint() && n >= 0:
		e.SetUint(uint64(n))
	default:
		return "", false
	}
	m, ok := reflect.TypeAssert[encoding.TextMarshaler](v)
	if !ok {
		return "", false
	}
	text, err := m.MarshalText()
	if err != nil || back.Interface().(encoding.TextUnmarshaler).UnmarshalText(text) != nil {
		return "", false
	}
	return string(text), back.Elem().Equal(v.Elem())
}

// structPlan makes the plan of a struct, of which all fields are exported.
func (p *plans) structPlan(t reflect.Type) *plan {
	const most = 64 // fields, a bit each
	fields := make([]*plan, t.NumField())
	// The fields that are structs are packed also if they are zero: a struct takes as long to compare
	// with zero as to pack.
	always := uint64(0)
	var format strings.Builder
	for i := range fields {
		f := t.Field(i)
		if !f.IsExported() || i >= most {
			panic("wire: field " + f.Name + " of " + t.String() + " cannot be packed")
		}
		fields[i] = p.add(f.Type)
		_, _ = fmt.Fprintf(&format, "%s %s %q; ", f.Name, fields[i].format, f.Tag.Get("json"))
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]() {
			always |= 1 << i
		}
	}
	return &plan{
		format: "struct {" + format.String() + "}",
		pack: func(p *packer, v reflect.Value) {
			set := always
			for i := range fields {
				if set&(1<<i) == 0 && !v.Field(i).IsZero() {
					set |= 1 << i
				}
			}
			p.number(set)
			for ; set != 0; set &= set - 1 {
				i := bits.TrailingZeros64(set)
				fields[i].pack(p, v.Field(i))
			}
		},
		unpack: func(u *unpacker, v reflect.Value) {
			set := u.number()
			if set>>len(fields) != 0 {
				u.fail("a struct has %d fields", len(fields))
			}
			for ; set != 0 && u.err == nil; set &= set - 1 {
				i := bits.TrailingZeros64(set)
				fields[i].unpack(u, v.Field(i))
			}
		},
	}
}
