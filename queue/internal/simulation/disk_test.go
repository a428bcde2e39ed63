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
	starts  map[int]machine.LeaseEntry
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

func (d *drive) Recall(fn func(place int, s machine.LeaseEntry)) error {
	d.reserved = make(map[int]queue.Token)
	for _, place := range slices.Sorted(maps.Keys(d.starts)) {
		d.reserved[place] = d.starts[place].Token
		fn(place, d.starts[place])
	}
	return nil
}

func (d *drive) Reserve(token queue.Token) (place int, err error) {
	for place = 1; d.reserved[place] != 0; place++ {
	}
	d.reserved[place] = token
	return place, nil
}

func (d *drive) Put(starts []machine.SlotEntry) (n int, err error) {
	for _, s := range starts {
		if !d.gone && d.reserved[s.Slot] == s.Token {
			d.starts[s.Slot] = s.LeaseEntry
		}
	}
	return len(starts), nil
}

func (d *drive) Free(place int, token queue.Token) {
	if d.reserved[place] == token {
		delete(d.reserved, place)
	}
}

// forget loses some entries of the lease log, as a loss of power does.
func (d *disk) forget(lost func() bool) {
	for _, place := range slices.Sorted(maps.Keys(d.starts)) {
		if lost() {
			delete(d.starts, place)
		}
	}
}
