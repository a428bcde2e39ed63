package receiver

import "sync"

// quota counts the bytes of unfinished uploads. It is safe for concurrent use.
type quota struct {
	total, perKey int64 // the most bytes; 0: no limit

	mu       sync.Mutex // taken after all others
	reserved int64
	byKey    map[string]int64
}

// reserve makes a file take more bytes of the quotas, if they have them.
func (q *quota) reserve(f *file, bytes int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	more := bytes - f.reserved
	if more <= 0 {
		return nil
	}
	if q.total > 0 && more > q.total-q.reserved {
		return refuse(statusInsufficientStorage, "all unfinished uploads together may have %d bytes; try again later",
			q.total)
	}
	if q.perKey > 0 && more > q.perKey-q.byKey[f.rec.Key] {
		return refuse(statusInsufficientStorage, "your unfinished uploads together may have %d bytes; finish or cancel some",
			q.perKey)
	}
	q.setLocked(f, bytes)
	return nil
}

// set sets the bytes that a file takes of the quotas, whether they have them or not.
func (q *quota) set(f *file, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.setLocked(f, bytes)
}

func (q *quota) setLocked(f *file, bytes int64) {
	more := bytes - f.reserved
	f.reserved = bytes
	q.reserved += more
	if q.byKey[f.rec.Key] += more; q.byKey[f.rec.Key] == 0 {
		delete(q.byKey, f.rec.Key)
	}
}
