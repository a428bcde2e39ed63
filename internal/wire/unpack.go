package wire

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"time"

	"github.com/stintgo/stint/queue"
)

// Unpack decodes b, all of it, into v, a pointer to a zero value of a type that [Pack] accepts. It
// fails with [queue.ErrTooLarge] if b exceeds the bounds of a body, or an item of a list in it has
// more than itemMost bytes, and with [queue.ErrInvalid] if b does not encode a value of v's type.
func Unpack(b []byte, v any, itemMost int64) error {
	to := reflect.ValueOf(v).Elem()
	u := &unpacker{rest: b, itemMost: itemMost}
	plansTable().of(to.Type()).unpack(u, to)
	if u.err == nil && len(u.rest) > 0 {
		u.fail("there are %d bytes after the value", len(u.rest))
	}
	return u.err
}

// unpacker reads packed values. After an error it reads zeros.
type unpacker struct {
	rest     []byte
	itemMost int64 // bytes
	values   int   // elements of lists and maps so far
	depth    int   // of the list that is read
	err      error
}

// fail records why the body cannot be decoded.
func (u *unpacker) fail(format string, args ...any) {
	u.end(fmt.Errorf("%w: packed: "+format, append([]any{queue.ErrInvalid}, args...)...))
}

func (u *unpacker) end(err error) {
	if u.err == nil {
		u.err, u.rest = err, nil
	}
}

// number reads a number.
func (u *unpacker) number() uint64 {
	n, size := binary.Uvarint(u.rest)
	if size <= 0 {
		u.fail("a number is cut off")
		return 0
	}
	u.rest = u.rest[size:]
	return n
}

// signed reads a signed number.
func (u *unpacker) signed() int64 {
	n := u.number()
	return int64(n>>1) ^ -int64(n&1)
}

// bytes returns the next n bytes of the body.
func (u *unpacker) bytes(n uint64) []byte {
	if n > uint64(len(u.rest)) {
		u.fail("a text is cut off")
		return nil
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b
}

// flag reads a byte that is 0 or 1.
func (u *unpacker) flag() bool {
	b := u.bytes(1)
	if len(b) == 1 && b[0] > 1 {
		u.fail("%d where 0 or 1 should be", b[0])
	}
	return len(b) == 1 && b[0] == 1
}

// length reads the length of a list or map. isNil reports that there is none, also
// after an error.
func (u *unpacker) length() (n int, isNil bool) {
	length := u.number()
	if length == 0 {
		return 0, true
	}
	length--
	switch {
	case length > ItemsMost:
		u.end(tooLarge("a list has more than %d items: send fewer in a call", ItemsMost))
	case length > uint64(len(u.rest)): // an item has a byte at least
		u.fail("a list is cut off")
	case u.values+int(length) > ValuesMost:
		u.end(tooLarge("it has more than %d values: send less in a call", ValuesMost))
	default:
		u.values += int(length)
		return int(length), false
	}
	return 0, true
}

// list reads a list into v.
func (u *unpacker) list(v reflect.Value, of *plan) {
	n, isNil := u.length()
	if isNil {
		return
	}
	u.depth++
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := 0; i < n && u.err == nil; i++ {
		before := len(u.rest)
		of.unpack(u, v.Index(i))
		if u.depth == 1 && u.err == nil && int64(before-len(u.rest)) > u.itemMost {
			u.end(tooLarge("a task, outcome or other part of it has more than %d bytes", u.itemMost))
		}
	}
	u.depth--
}

// pairs reads a map into v.
func (u *unpacker) pairs(v reflect.Value, key, elem *plan) {
	n, isNil := u.length()
	if isNil {
		return
	}
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, n))
	for i := 0; i < n && u.err == nil; i++ {
		k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		key.unpack(u, k)
		elem.unpack(u, e)
		v.SetMapIndex(k, e)
	}
}

func unpackTime(u *unpacker, v reflect.Value) {
	sec, nsec := u.signed(), u.number()
	if nsec >= uint64(time.Second) || sec < timeLeast || sec > timeMost {
		u.fail("%d s and %d ns are not a time of the years 0 to 9999", sec, nsec)
		return
	}
	*v.Addr().Interface().(*time.Time) = time.Unix(sec, int64(nsec)).UTC()
}

func unpackBool(u *unpacker, v reflect.Value) { v.SetBool(u.flag()) }

func unpackInt(u *unpacker, v reflect.Value) {
	n := u.signed()
	if v.OverflowInt(n) {
		u.fail("%d is too large", n)
		return
	}
	v.SetInt(n)
}

func unpackUint(u *unpacker, v reflect.Value) {
	n := u.number()
	if v.OverflowUint(n) {
		u.fail("%d is too large", n)
		return
	}
	v.SetUint(n)
}

func unpackString(u *unpacker, v reflect.Value) { v.SetString(string(u.bytes(u.number()))) }

func unpackArray(u *unpacker, v reflect.Value) { copy(v.Bytes(), u.bytes(uint64(v.Len()))) }

// unpackBytes copies the bytes, because a body is much larger than the part of it that is kept.
func unpackBytes(u *unpacker, v reflect.Value) {
	if n := u.number(); n > 0 {
		v.SetBytes(append([]byte{}, u.bytes(n-1)...))
	}
}
