package receiver

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

const (
	sweepEvery = time.Minute

	// receiptsMax is how many finished uploads are known by their IDs: a receipt takes about
	// 1 KiB of memory.
	receiptsMax = 10_000
)

// sweeper removes what has expired, and calls Finished again where it has failed. The two do not wait for each other,
// as Finished may take long.
type sweeper struct{ *store }

// run sweeps at once, for what Open has found, and then periodically.
func (s *sweeper) run() {
	var both sync.WaitGroup
	both.Go(func() { s.repeat(s.sweep) })
	both.Go(func() { s.repeat(s.announce) })
	both.Wait()
}

func (s *sweeper) repeat(step func(now time.Time)) {
	step(clock.Now())
	tick := time.NewTicker(min(sweepEvery, s.cfg.Expiry))
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			step(now)
		}
	}
}

// sweep removes what has expired at a time, and the oldest receipts beyond receiptsMax.
func (s *sweeper) sweep(now time.Time) {
	for _, f := range s.allLeftovers() {
		f.mu.Lock()
		err := f.discard()
		f.mu.Unlock()
		if err != nil {
			s.cfg.Logger.Error("removing an upload failed again", slog.String("upload", f.id), slog.Any("error", err))
		}
	}
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
		if err := f.expire(at); err != nil {
			s.cfg.Logger.Error("removing an expired upload failed", slog.String("upload", f.id), slog.Any("error", err))
		}
	}
}

// announce publishes what Open could not, and calls Finished again where it has failed.
func (s *sweeper) announce(time.Time) {
	for _, f := range s.all() {
		if s.ctx.Err() != nil {
			return
		}
		f.publishFound()
		if !f.unannounced() {
			continue
		}
		if err := f.announce(s.ctx); err != nil {
			s.cfg.Logger.Error("the hook of a finished upload failed", slog.String("upload", f.id), slog.Any("error", err))
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
