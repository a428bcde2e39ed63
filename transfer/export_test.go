package transfer

import (
	"context"
	"log/slog"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer/internal/protocol"
)

// Lanes returns the ranges of bytes of the lanes of a file, and the size of its chunks.
func Lanes(size, chunk int64, lanes int) (chunkSize int64, ranges [][2]int64) {
	l := newLayout(size, chunk, lanes)
	for _, lane := range newPlan(l, fingerprint{}, "").lanes {
		ranges = append(ranges, [2]int64{lane.start, lane.end})
	}
	return l.chunk, ranges
}

// Reencode decodes and encodes a checkpoint.
func Reencode(encoded []byte) ([]byte, error) {
	p, err := decodePlan(encoded)
	if err != nil {
		return nil, err
	}
	return p.encode(), nil
}

// ResumeUnreadable resumes an upload of a file that can be opened but not read, and returns the
// error. The attempt has no server, so it panics if it tries to delete what was sent.
func ResumeUnreadable(ctx context.Context, path string, checkpoint []byte) error {
	file, err := openSource(path)
	if err != nil {
		return err
	}
	if err := file.file.Close(); err != nil {
		return err
	}
	a := &attempt{
		cfg: Config{Logger: slog.New(slog.DiscardHandler)}, can: protocol.Abilities{Abort: true}, source: file,
		job: &queue.Job[Upload]{Attempt: &queue.Attempt{Task: queue.Task{Checkpoint: checkpoint}}},
	}
	_, err = a.resumed(ctx)
	return err
}

// Drive applies a trigger to a chunk in a state, by the methods of the table of chunks. It
// returns false if the change is not in the table of transitions.
func Drive(from ChunkState, on ChunkTrigger) (to ChunkState, ok bool) {
	defer func() {
		if recover() != nil {
			to, ok = from, false
		}
	}()
	c := newChunkTable(1)
	c.states[0] = from
	switch on {
	case OnSend:
		c.sending(0, 1)
	case OnAck:
		c.done(0, 1)
	case OnFail:
		c.fail(0)
	case OnStop:
		c.stop()
	case OnLost:
		c.lose(0, 1)
	}
	return c.states[0], true
}

// Rates returns the rates of a meter that counts bytes at intervals.
func Rates(every time.Duration, counts ...int64) (rates []float64) {
	var m meter
	at := time.Unix(0, 0)
	m.at = at
	sum := int64(0)
	for _, n := range counts {
		at, sum = at.Add(every), sum+n
		m.add(at, sum)
		rates = append(rates, m.rate)
	}
	return rates
}

// RateText and RateOf format and parse a rate.
func RateText(rate float64) string { return rateText(rate) }

// RateOf parses a rate.
func RateOf(note string) float64 { return rateOf(note) }
