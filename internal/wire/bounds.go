package wire

import (
	"bytes"
	"fmt"
	"io"

	"github.com/stintgo/stint/queue"
)

// Bounds of the body of a call. A few bytes of it can become a value of
// some hundred bytes in memory, so a body is refused not only for its size, but also as
// soon as it exceeds these. [Cost] is the memory that a body can then take.
const (
	ItemsMost  = 10_000  // elements of an array, or members of an object: tasks, outcomes, heartbeats, labels, IDs
	ValuesMost = 1 << 20 // names and values in a body, all together
	DepthMost  = 16      // nested arrays and objects
)

// ItemSize and ValueSize are approximately the bytes of memory that an empty item of a
// list and any other value take at most, apart from their text.
const (
	ItemSize  = 512
	ValueSize = 64
)

// Cost returns how many bytes of memory a body of n bytes can take at most when it is
// decoded. A body that is packed takes the most: an empty item of it has one byte, and all
// of the body is in memory together with the copies of its texts.
func Cost(n int64) int64 { return 2*n + min(n, ItemsMost)*ItemSize + min(n, ValuesMost)*ValueSize }

// Bounded returns a reader of the JSON in r that fails with [queue.ErrTooLarge] where the
// JSON exceeds the bounds, or where an item of a list, or another member of the
// outermost object, has more than itemMost bytes. It checks each byte before the decoder
// gets it. It does not check that the text is JSON.
func Bounded(r io.Reader, itemMost int64) io.Reader { return &bounded{r: r, itemMost: itemMost} }

// bounded counts the values in the JSON that it reads.
type bounded struct {
	r        io.Reader
	itemMost int64 // bytes
	err      error // ends the reading

	quoted, escaped bool                // the next byte is in a string, and follows a backslash
	depth           int                 // of the array or object that the next byte is in
	items           [DepthMost + 1]int  // so far, in the arrays and objects around it
	isArray         [DepthMost + 1]bool // and which of them are arrays
	values          int
	item            int64 // bytes of the present item
}

// Read implements [io.Reader].
func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	for i := 0; i < n; i++ {
		if i += b.skip(p[i:n]); i < n {
			b.next(p[i])
		}
		if b.err != nil {
			return 0, b.err
		}
	}
	return n, err
}

// skip passes the bytes of a string up to its end or an escape, and returns their number. Most
// bytes are such. It looks no farther than some bytes, so that many escapes before a distant end do
// not each look for that end.
func (b *bounded) skip(p []byte) (n int) {
	if !b.quoted || b.escaped {
		return 0
	}
	const window = 256
	p = p[:min(len(p), window)]
	if n = bytes.IndexByte(p, '"'); n < 0 {
		n = len(p)
	}
	if escape := bytes.IndexByte(p[:n], '\\'); escape >= 0 {
		n = escape
	}
	b.grow(n)
	return n
}

// grow adds bytes to the present item.
func (b *bounded) grow(n int) {
	if b.item += int64(n); b.item > b.itemMost {
		b.err = tooLarge("a task, outcome or other part of it has more than %d bytes", b.itemMost)
	}
}

// next passes one byte.
func (b *bounded) next(c byte) {
	b.grow(1)
	switch {
	case b.escaped:
		b.escaped = false
	case c == '"':
		b.quoted = !b.quoted
	case b.quoted:
		b.escaped = c == '\\'
	case c == '{', c == '[':
		b.enter(c == '[')
	case c == '}', c == ']':
		b.depth = max(b.depth-1, 0)
	case c == ',':
		b.count()
	case c == ':':
		b.values++
	}
}

// enter begins an array or object.
func (b *bounded) enter(isArray bool) {
	if b.depth == DepthMost {
		b.err = tooLarge("it may have %d arrays and objects inside each other", DepthMost)
		return
	}
	b.depth++
	b.items[b.depth], b.isArray[b.depth] = 0, isArray
	b.count()
}

// count counts another item of the array or object that the next byte is in. It counts
// one item also in an empty array or object.
func (b *bounded) count() {
	b.items[b.depth]++
	b.values++
	if b.depth <= 1 || b.depth == 2 && b.isArray[b.depth] {
		b.item = 0
	}
	switch {
	case b.items[b.depth] > ItemsMost:
		b.err = tooLarge("a list has more than %d items: send fewer in a call", ItemsMost)
	case b.values > ValuesMost:
		b.err = tooLarge("it has more than %d values: send less in a call", ValuesMost)
	}
}

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: the body of the call: "+format, append([]any{queue.ErrTooLarge}, args...)...)
}
