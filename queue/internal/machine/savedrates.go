package machine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// savedRates keeps what queues and keys have spent of their rates while the store is closed:
// Close writes a row for each of them that has not regained its whole burst, and Open reads and
// removes the rows. After a crash there are none, and each rate has its whole burst: a row for
// each start would cost claims a write. The caller of each method holds the lock of the machine.
type savedRates struct {
	clock    *clock
	journal  *journal.Journal
	keyRates *keyRates
	queues   *queueSet

	loaded []*savedRate // by load, until the first call applies them
}

// savedRate is the row of a queue or, if key is not "", of one of its keys.
type savedRate struct {
	queue, key string
	arrival    fixed // as for rate
}

func (s *savedRate) row() string { return rowRate + s.queue + "\x00" + s.key }

// save writes the rows.
func (r *savedRates) save() {
	if r.journal.Failed() != nil {
		return
	}
	for _, s := range r.loaded { // there was no call since Open
		r.write(s)
	}
	for _, q := range r.queues.all() {
		r.write(&savedRate{q.name, "", q.arrival})
		for _, key := range slices.Sorted(maps.Keys(q.keys)) {
			r.write(&savedRate{q.name, key, q.keys[key].arrival})
		}
	}
}

// write writes a row, unless the whole burst is regained.
func (r *savedRates) write(s *savedRate) {
	if s.arrival.ns < r.clock.now {
		return
	}
	value := binary.BigEndian.AppendUint64(nil, uint64(s.arrival.ns))
	r.journal.Set(s.row(), binary.BigEndian.AppendUint32(value, s.arrival.frac), false)
}

// load reads and removes the rows. The settings must be loaded already.
func (r *savedRates) load() error {
	err := r.journal.Stored().Scan(rowRate, func(rest string, value []byte) error {
		const size = 8 + 4 // bytes
		name, key, ok := strings.Cut(rest, "\x00")
		if !ok || len(value) != size {
			return fmt.Errorf("%w: row %q of what is spent of a rate", record.ErrCorrupt, rest)
		}
		arrival := fixed{int64(binary.BigEndian.Uint64(value)), binary.BigEndian.Uint32(value[8:])}
		r.loaded = append(r.loaded, &savedRate{name, key, arrival})
		return nil
	})
	for _, s := range r.loaded {
		r.journal.Set(s.row(), nil, false)
	}
	return err
}

// opened applies the rows. The first call of the machine calls it. If the clock of the former
// process was ahead, the time of that call may be before the former process ended: then no more
// than a whole burst counts as spent.
func (r *savedRates) opened() {
	for _, s := range r.loaded {
		if q := r.queues.get(s.queue); s.key == "" {
			q.arrival = q.limits.rate.atMost(s.arrival, r.clock.now)
		} else {
			r.keyRates.restore(q, s.key, q.limits.rateOfKey(s.key).atMost(s.arrival, r.clock.now))
		}
	}
	r.loaded = nil
}
