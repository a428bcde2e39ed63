package simulation_test

import (
	"errors"
	"maps"
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// disk is what survives a crash of the store.
type disk struct {
	rows    map[string][]byte
	applies int  // the number of its batches
	fault   flaw // of the next batch
	entries map[int]machine.LeaseEntry
}

// flaw is a failure of a batch.
type flaw uint8

const (
	sound   flaw = iota
	refused      // the batch is lost
	unclear      // the batch is written, but the store gets an error
)

var errDisk = errors.New("the disk has failed")

// drive is the access of one machine to the disk. A machine that has crashed has none.
type drive struct {
	*disk
	gone     bool
	reserved map[int]queue.Token
}

var (
	_ machine.Rows         = (*drive)(nil)
	_ machine.LeaseStorage = (*drive)(nil)
)

func (d *drive) Apply(batch []machine.Change) error {
	fault := d.fault
	d.fault = sound
	if d.gone || fault == refused {
		return errDisk
	}
	for _, c := range batch {
		if c.Value == nil {
			delete(d.rows, c.Key)
		} else {
			d.rows[c.Key] = c.Value
		}
	}
	d.applies++
	if fault == unclear {
		return errDisk
	}
	return nil
}

func (d *drive) Get(key string) ([]byte, error) { return d.rows[key], nil }

func (d *drive) Scan(from, to string, down bool, fn func(key string, value []byte) bool) error {
	keys := slices.Sorted(maps.Keys(d.rows))
	if down {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		if key >= from && key < to && !fn(key, d.rows[key]) {
			break
		}
	}
	return nil
}

func (d *drive) Close() error { return nil }

func (d *drive) Recall(fn func(slot int, s machine.LeaseEntry)) error {
	d.reserved = make(map[int]queue.Token)
	for _, slot := range slices.Sorted(maps.Keys(d.entries)) {
		d.reserved[slot] = d.entries[slot].Token
		fn(slot, d.entries[slot])
	}
	return nil
}

func (d *drive) Reserve(token queue.Token) (slot int, err error) {
	for slot = 1; d.reserved[slot] != 0; slot++ {
	}
	d.reserved[slot] = token
	return slot, nil
}

func (d *drive) Put(entries []machine.SlotEntry) (n int, err error) {
	for _, s := range entries {
		if !d.gone && d.reserved[s.Slot] == s.Token {
			d.entries[s.Slot] = s.LeaseEntry
		}
	}
	return len(entries), nil
}

func (d *drive) Free(slot int, token queue.Token) {
	if d.reserved[slot] == token {
		delete(d.reserved, slot)
	}
}

// forget loses some entries of the lease log, as a loss of power does.
func (d *disk) forget(lost func() bool) {
	for _, slot := range slices.Sorted(maps.Keys(d.entries)) {
		if lost() {
			delete(d.entries, slot)
		}
	}
}
