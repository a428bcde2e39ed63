package redisstore

import "github.com/stintgo/stint/queue/internal/journal"

// batch is the changes of a batch by the first letter of their keys.
type batch struct {
	families []*family
}

// family is the changes of keys with one first letter.
type family struct {
	letter       byte
	set, removed int
	changes      []journal.Change
}

func newBatch(changes []journal.Change) (b batch) {
	for _, c := range changes {
		f := b.family(c.Key[0])
		f.changes = append(f.changes, c)
		if c.Value == nil {
			f.removed++
		} else {
			f.set++
		}
	}
	return b
}

// family returns the family of a letter. There are few.
func (b *batch) family(letter byte) *family {
	for _, f := range b.families {
		if f.letter == letter {
			return f
		}
	}
	f := &family{letter: letter}
	b.families = append(b.families, f)
	return f
}

// append appends the fields of all families as arguments of apply.lua.
func (b *batch) append(args []any) []any {
	for _, f := range b.families {
		for _, c := range f.changes {
			if c.Value != nil {
				args = append(args, c.Key, c.Value)
			}
		}
		for _, c := range f.changes {
			if c.Value == nil {
				args = append(args, c.Key)
			}
		}
	}
	return args
}
