package filestore

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// logAhead is how many bytes of zeros are put behind the end of a log. One
	// sync among some hundred writes them, and takes about twice its time.
	logAhead = 256 << 10

	pageSize = 4 << 10
)

// logFile is a log of the database whose file is longer than what was written to
// it, so that a sync need not record a new size of the file, or blocks that are used
// now: on ext4 that is a commit of its journal, and a third of the time.
// A reader of the log takes zeros for its end, as it takes what is left of older
// records in a log that is used again, where nothing need be filled.
//
// It is used by one goroutine at a time, as the database uses its logs.
type logFile struct {
	opFile
	ahead int64 // bytes of zeros; 0 if the file grows with what is written

	at     int64 // where the next write goes
	synced int64 // what at was when the file was synced last
	end    int64 // the size of the file, as far as it is used
}

// newLogFile is a log that is written from its beginning.
func newLogFile(f opFile, ahead int64) *logFile {
	l := &logFile{opFile: f, ahead: ahead}
	// If there is no size, the file is filled anew, behind what is written.
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

// SyncData is as [vfs.File] says, and makes the file longer if it has grown.
func (f *logFile) SyncData() error {
	if f.at > f.end {
		f.end = f.at
		// Many bytes at once are bounded by writing them, and would be written twice.
		if f.ahead > 0 && f.at-f.synced <= f.ahead/4 {
			f.fill()
		}
	}
	f.synced = f.at
	return f.opFile.SyncData()
}

// fill writes zeros behind what was written. That it fails is no error, so it does
// not go through the guard: the log grows as it is written then, and meets a full
// disk when its records do. Room is reserved before, so that a disk that has none
// is left as it is.
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
