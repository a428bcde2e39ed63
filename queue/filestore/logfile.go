package filestore

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// logAhead is the number of zero bytes behind the end of a log. One sync in some
	// hundred writes them, and takes about twice as long.
	logAhead = 256 << 10

	pageSize = 4 << 10
)

// logFile is a log of the database whose file is longer than its content, so that a sync
// need not record a new size or newly used blocks: on ext4 that is a commit of its
// journal, and a third of the time. A reader takes zeros for the end of the log, as it
// does the remains of older records in a reused log, which needs no zeros.
//
// One goroutine at a time uses it, as the database does with its logs.
type logFile struct {
	opFile
	ahead int64 // the number of zero bytes; 0 if the file grows with its content

	at     int64 // the offset of the next write
	synced int64 // at of the last sync
	end    int64 // the size of the file with its zeros
}

// newLogFile returns a log that is written from its beginning.
func newLogFile(f opFile, ahead int64) *logFile {
	l := &logFile{opFile: f, ahead: ahead}
	// If the size is unknown, zeros are written behind the content.
	if info, err := f.Stat(); err == nil {
		l.end = info.Size()
	}
	return l
}

// Write is as [vfs.File] says.
func (f *logFile) Write(p []byte) (n int, err error) {
	n, err = f.opFile.Write(p)
	f.at += int64(n)
	return n, err
}

// SyncData is as [vfs.File] says, and extends the file if its content has reached the
// end.
func (f *logFile) SyncData() error {
	if f.at > f.end {
		f.end = f.at
		// A large write would write its bytes twice: first as zeros.
		if f.ahead > 0 && f.at-f.synced <= f.ahead/4 {
			f.fill()
		}
	}
	f.synced = f.at
	return f.opFile.SyncData()
}

// fill writes zeros behind the content. An error of it is ignored, and does not go
// through failStop: then the log grows with its content, which meets the full disk
// itself. Space is reserved first, so that a full disk is left as it is.
func (f *logFile) fill() {
	end := (f.at + f.ahead) &^ (pageSize - 1)
	err := f.File.Preallocate(f.at, end-f.at)
	if err == nil {
		_, err = f.File.WriteAt(make([]byte, end-f.at), f.at)
	}
	if err != nil {
		f.ahead = 0
		return
	}
	f.end = end
}

var _ vfs.File = (*logFile)(nil)
