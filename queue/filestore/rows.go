package filestore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
	"github.com/stintgo/stint/queue/internal/stall"
)

// The rows of the directory itself. Their keys begin with a zero byte, unlike those of
// the machine.
const (
	rowFormat = "\x00format" // the format of all rows; four bytes
	rowEpoch  = "\x00epoch"  // the number of openings; four bytes
	rowBatch  = "\x00batch"  // the number of the last batch; eight bytes
)

// format is the version of the format of rows. A store reads this version and older ones.
// A change of the format increments it, and keeps the code that reads the previous
// version.
const format = 1

// rows are the rows of a machine, in a database.
type rows struct {
	// Immutable.
	dir      string
	fs       vfs.FS // without failStop
	cfg      Config
	failStop *failStop
	lock     io.Closer
	db       *pebble.DB // nil if it could not be opened
	epoch    uint32

	leaseLog *leaseLog // nil until the directory is open
	tail     *tail     // owned by Apply, or by the syncer if there is one
	batch    uint64    // the number of the last batch; owned by Apply
	later    *syncer   // syncs later; nil if Apply syncs

	stall stall.Stall // of the batch that is being written

	closing sync.Mutex // held by operations that must not overlap Close
	gone    bool       // closed; guarded by closing
}

var _ machine.Rows = (*rows)(nil)

// Apply is as [machine.Rows] says.
func (r *rows) Apply(batch []machine.Change) error {
	b := r.db.NewBatch()
	for _, c := range batch {
		if c.Value == nil {
			must(b.Delete([]byte(c.Key), nil))
		} else {
			must(b.Set([]byte(c.Key), c.Value, nil))
		}
	}
	r.batch++
	must(b.Set([]byte(rowBatch), binary.BigEndian.AppendUint64(nil, r.batch), nil))
	if r.later != nil {
		return r.later.write(b, r.batch)
	}
	if err := r.commit(b); err != nil {
		return err
	}
	r.tail.set(r.batch)
	return nil
}

// must is for changes of a batch in memory, which do not fail in a correct program.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// commit returns when a batch is synced, or never can be. In the second case the database
// is left as it is, blocked in failStop.
func (r *rows) commit(b *pebble.Batch) error {
	defer r.stall.Watch(r.failStop.state)()
	return r.failStop.run(func() error { return errors.Join(b.Commit(pebble.Sync), b.Close()) })
}

// Get is as [machine.Rows] says.
func (r *rows) Get(key string) ([]byte, error) {
	value, closer, err := r.db.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, brief(err)
	}
	return keep(value), closer.Close()
}

// damaged logs that a task cannot be read.
func (r *rows) damaged(id queue.ID, err error) {
	r.cfg.Logger.Error("a task cannot be read: check the disk, or restore the directory from a copy",
		slog.String("task", id.String()), slog.String("directory", r.dir), slog.Any("error", err))
}

// setBack logs that the clock is behind that of the process before.
func (r *rows) setBack(ahead time.Duration) {
	r.cfg.Logger.Warn("the clock is behind the times in the directory, which are corrected: a process before this one "+
		"had a clock that was ahead, or this one has the wrong time: check the clock",
		slog.String("directory", r.dir), slog.Duration("ahead", ahead))
}

// Scan is as [machine.Rows] says.
func (r *rows) Scan(from, to string, down bool, fn func(key string, value []byte) bool) error {
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: []byte(from), UpperBound: []byte(to)})
	if err != nil {
		return brief(err)
	}
	start, step := it.First, it.Next
	if down {
		start, step = it.Last, it.Prev
	}
	for ok := start(); ok; ok = step() {
		value, err := it.ValueAndErr()
		if err != nil || !fn(string(it.Key()), value) {
			break
		}
	}
	// A damaged file ends an iteration early, which only these errors show.
	return brief(errors.Join(it.Error(), it.Close()))
}

// keep copies a value out of the database's memory. The copy is not nil, which would mean
// that there is no value.
func keep(value []byte) []byte { return append(make([]byte, 0, len(value)), value...) }

// room returns why no tasks can be accepted; nil if they can.
func (r *rows) room() error {
	if err := r.failStop.state(); err != nil {
		return fmt.Errorf("%s: %w", r.dir, err)
	}
	usage, err := r.fs.GetDiskUsage(r.dir)
	if err != nil {
		return nil //nolint:nilerr // without this information, the store notices a full disk when it writes
	}
	if free := usage.AvailBytes; free < uint64(r.cfg.MinFree) {
		return fmt.Errorf("the disk of %s has %d MiB left, and tasks are accepted from %d MiB on: make room, choose a "+
			"directory on another disk (--dir), or ask for less (MinFree in filestore.Config, stint serve --min-free)",
			r.dir, free>>20, (r.cfg.MinFree+1<<20-1)>>20)
	}
	return nil
}

// Close is as [machine.Rows] says, and may be called again. If the database cannot be
// closed, it is left behind in failStop, and the directory is free nevertheless.
func (r *rows) Close() error {
	r.closing.Lock()
	defer r.closing.Unlock()
	if r.gone {
		return nil
	}
	r.gone = true
	if r.later != nil {
		r.later.stop()
	}
	err := r.closeDatabase()
	if r.tail != nil {
		err = errors.Join(err, r.tail.close())
	}
	if r.leaseLog != nil {
		err = errors.Join(err, r.leaseLog.close())
	}
	return errors.Join(err, r.lock.Close())
}

func (r *rows) closeDatabase() (err error) {
	if r.db != nil {
		err = r.failStop.run(r.db.Close)
	}
	r.failStop.retire(cmp.Or(err, queue.ErrClosed))
	return err
}
