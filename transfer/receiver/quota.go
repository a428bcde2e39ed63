package receiver

import "sync"

// uploadsMax is the largest number of unfinished uploads: each takes memory, also without bytes. Parts count one by
// one.
const uploadsMax = 100_000

// quota counts unfinished uploads and their bytes. It is safe for concurrent use.
type quota struct {
	total, perKey int64 // the most bytes; 0: no limit
	uploadsMax    int

	mu       sync.Mutex // taken after all others
	reserved int64
	byKey    map[string]int64
	uploads  int
}

// share is what a file takes of a quota. The mutex of the quota guards it.
type share struct {
	bytes   int64
	uploads int
}

// count counts one upload of a file more, unless there are too many.
func (q *quota) count(f *file) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.uploads >= q.uploadsMax {
		return refuse(statusInsufficientStorage,
			"there are %d unfinished uploads, and no room for more; finish or cancel some, or try again later", q.uploads)
	}
	q.uploads++
	f.share.uploads++
	return nil
}

// uncount counts one upload of a file less, unless the file has been released.
func (q *quota) uncount(f *file) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f.share.uploads > 0 {
		q.uploads--
		f.share.uploads--
	}
}

// restore counts a file that an earlier process has left, also beyond the limits.
func (q *quota) restore(f *file, uploads int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.setLocked(f, bytes)
	q.uploads += uploads - f.share.uploads
	f.share.uploads = uploads
}

// release returns to the quotas what a file takes.
func (q *quota) release(f *file) { q.restore(f, 0, 0) }

// reserve makes a file take more bytes of the quotas, if they have them.
func (q *quota) reserve(f *file, bytes int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	more := bytes - f.share.bytes
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
	more := bytes - f.share.bytes
	f.share.bytes = bytes
	q.reserved += more
	if q.byKey[f.rec.Key] += more; q.byKey[f.rec.Key] == 0 {
		delete(q.byKey, f.rec.Key)
	}
}
