package durable

import "github.com/stintgo/stint/bench/disk"

// syncedLog is the lower bound of the time of one caller: a record that is written
// and synced.
type syncedLog struct {
	log     *disk.Log
	records int
}

func openGrowingLog(t *turn) (keeper, error) { return openLog(t, 0) }

func openWrittenOver(t *turn) (keeper, error) { return openLog(t, 4<<20) }

func openLog(t *turn, room int) (keeper, error) {
	l, err := disk.NewLog(t.dir, recordSize, room)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = l.Close() })
	return &syncedLog{log: l}, nil
}

func (s *syncedLog) submit(int64) error {
	s.records++
	return s.log.Append()
}

func (s *syncedLog) unsettled() (int, error) { return s.records, nil }
