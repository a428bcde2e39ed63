package durable

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// recordSize is about what a task of ours takes with its payload.
const recordSize = 250

// pebbleRows is the lower bound of the cost of a queue on Pebble: a row for each task
// that is set and deleted later, both synced. Nothing is decoded, counted, kept
// for people to see, or put in any order.
type pebbleRows struct {
	db      *pebble.DB
	last    atomic.Uint64 // the newest row
	rows    chan uint64   // to be handled
	workers sync.WaitGroup
	failed  chan error
}

func openPebble(t *turn) (keeper, error) {
	db, err := pebble.Open(filepath.Join(t.dir, "pebble"), &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest,
		MemTableSize:       32 << 20,
		Logger:             quietLogger{},
	})
	if err != nil {
		return nil, err
	}
	p := &pebbleRows{db: db, failed: make(chan error, workers)}
	t.Cleanup(func() { _ = db.Close() })
	return p, nil
}

func rowKey(row uint64) []byte { return binary.BigEndian.AppendUint64(nil, row) }

func (p *pebbleRows) submit(int64) error {
	row := p.last.Add(1)
	err := p.db.Set(rowKey(row), make([]byte, recordSize), pebble.Sync)
	p.hand(row)
	return err
}

func (p *pebbleRows) submitBatch(n int) error {
	to := p.last.Add(uint64(n))
	from := to - uint64(n) + 1
	err := p.commit(func(b *pebble.Batch) (err error) {
		for row := from; row <= to; row++ {
			err = errors.Join(err, b.Set(rowKey(row), make([]byte, recordSize), nil))
		}
		return err
	})
	for row := from; row <= to; row++ {
		p.hand(row)
	}
	return err
}

func (p *pebbleRows) commit(fill func(*pebble.Batch) error) error {
	b := p.db.NewBatch()
	return errors.Join(fill(b), b.Commit(pebble.Sync), b.Close())
}

// hand gives a row to the workers, if there are any.
func (p *pebbleRows) hand(row uint64) {
	if p.rows != nil {
		p.rows <- row
	}
}

func (p *pebbleRows) work(handled func(stamp int64)) error { //nolint:unparam // the interface has the error
	p.rows = make(chan uint64, 1<<18) // submitting is never to wait for it
	for range workers {
		p.workers.Go(func() {
			for row := range p.rows {
				if err := p.finish(row, handled); err != nil {
					p.failed <- err
					return
				}
			}
		})
	}
	return nil
}

// finish deletes a row together with those that wait as well.
func (p *pebbleRows) finish(row uint64, handled func(stamp int64)) error {
	done := 1
	err := p.commit(func(b *pebble.Batch) error {
		err := b.Delete(rowKey(row), nil)
		for ; done < batch; done++ {
			select {
			case next := <-p.rows:
				err = errors.Join(err, b.Delete(rowKey(next), nil))
			default:
				return err
			}
		}
		return err
	})
	for range done {
		handled(0)
	}
	return err
}

func (p *pebbleRows) settled() error {
	close(p.rows)
	p.workers.Wait()
	close(p.failed)
	return <-p.failed
}

func (p *pebbleRows) unsettled() (int, error) {
	it, err := p.db.NewIter(nil)
	if err != nil {
		return 0, err
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n, it.Close()
}

// quietLogger drops the messages about each new log and table.
type quietLogger struct{}

func (quietLogger) Infof(string, ...any)  {}
func (quietLogger) Errorf(string, ...any) {}

// Fatalf is called when nothing can be written any more.
func (quietLogger) Fatalf(format string, args ...any) { panic(errors.New(format)) }
