package receiver

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

const (
	sweepEvery = time.Minute

	// receiptsMax is how many finished uploads are known by their IDs: a receipt takes about
	// 1 KiB of memory.
	receiptsMax = 10_000
)

// sweeper removes what has expired, and calls Finished again where it has failed.
type sweeper struct{ *store }

// run sweeps at once, for what Open has found, and then periodically.
func (s *sweeper) run() {
	s.sweep(clock.Now())
	tick := time.NewTicker(min(sweepEvery, s.cfg.Expiry))
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			s.sweep(now)
		}
	}
}

// sweep removes what has expired at a time, and the oldest receipts beyond receiptsMax, and
// calls Finished again where it has failed.
func (s *sweeper) sweep(now time.Time) {
	all := s.all()
	oldest := oldReceipts(all)
	for _, f := range all {
		if s.ctx.Err() != nil {
			return
		}
		at := now
		if oldest[f] {
			at = now.Add(s.cfg.Expiry)
		}
		f.publishFound()
		if err := f.expire(at); err != nil {
			s.cfg.Logger.Error("removing an expired upload failed", slog.String("upload", f.id), slog.Any("error", err))
		}
		if f.unannounced() {
			if err := f.announce(s.ctx); err != nil {
				s.cfg.Logger.Error("the hook of a finished upload failed", slog.String("upload", f.id), slog.Any("error", err))
			}
		}
	}
}

// oldReceipts returns the finished files that have to be forgotten.
func oldReceipts(all []*file) map[*file]bool {
	if len(all) <= receiptsMax {
		return nil
	}
	finished := map[*file]time.Time{}
	for _, f := range all {
		f.mu.Lock()
		if f.announced {
			finished[f] = f.touched
		}
		f.mu.Unlock()
	}
	byAge := slices.SortedFunc(maps.Keys(finished), func(a, b *file) int { return finished[a].Compare(finished[b]) })
	old := map[*file]bool{}
	for _, f := range byAge[:max(len(byAge)-receiptsMax, 0)] {
		old[f] = true
	}
	return old
}
