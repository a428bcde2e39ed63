package filestore

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// syncer syncs batches some time after they were written, several at once. Until then the
// memory of this process has them.
type syncer struct {
	rows    *rows
	ended   sync.WaitGroup
	stopped chan struct{}
	wake    chan struct{} // signals a new batch

	mu    sync.Mutex
	batch uint64 // the number of the last batch
}

func newSyncer(r *rows) *syncer {
	s := &syncer{rows: r, stopped: make(chan struct{}), wake: make(chan struct{}, 1)}
	s.ended.Go(s.loop)
	return s
}

// write writes a batch without a sync.
func (s *syncer) write(b *pebble.Batch, number uint64) error {
	defer s.rows.stall.Watch(s.rows.failStop.state)()
	err := s.rows.failStop.run(func() error { return errors.Join(b.Commit(pebble.NoSync), b.Close()) })
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.batch = number
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// loop syncs until stop, MayLose after the first batch that is not synced.
func (s *syncer) loop() {
	for {
		select {
		case <-s.stopped:
			return
		case <-s.wake:
		}
		select {
		case <-s.stopped: // closing the database syncs the rest
			return
		case <-time.After(s.rows.cfg.MayLose):
		}
		s.sync()
	}
}

func (s *syncer) sync() {
	s.mu.Lock()
	number := s.batch
	s.mu.Unlock()
	// Writes of later batches succeed on a full disk, since the database keeps them in memory.
	// They must not go on for long: a crash would undo all of them.
	defer s.rows.stall.Watch(s.rows.failStop.state)()
	err := s.rows.failStop.run(func() error { return s.rows.db.LogData(nil, pebble.Sync) })
	if err != nil {
		// failStop keeps the error, so the next call fails with it.
		s.rows.cfg.Logger.Error("what was accepted lately cannot be synced", slog.Any("error", err))
		return
	}
	s.rows.tail.set(number)
}

// stop ends the loop, and waits for its end.
func (s *syncer) stop() {
	close(s.stopped)
	s.ended.Wait()
}
