// Package disk is the disk that durable work waits for.
package disk

import (
	"fmt"
	"os"
	"path/filepath"
)

// memoryTable has the file systems that lose everything with the power, where a
// sync costs nothing and figures of durable work mean nothing.
var memoryTable = map[string]bool{"tmpfs": true, "ramfs": true}

// CheckReal returns an error if a directory is in memory.
func CheckReal(dir string) error {
	if name := FileSystem(dir); memoryTable[name] {
		return fmt.Errorf("%s is on %s, where a sync costs nothing; set TMPDIR to a directory on a disk", dir, name)
	}
	return nil
}

// Log is a file that records are written to, each synced before the next: the
// least work that durability needs. It is not safe for concurrent use.
type Log struct {
	file   *os.File
	record []byte
	size   int64 // bytes that are written over and over; 0 if the file grows
	at     int64
}

// NewLog makes a log in dir for records of record bytes. If room is not 0 the
// file has that size from the beginning and is written over: then a sync has
// nothing to write but the record.
func NewLog(dir string, record, room int) (*Log, error) {
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	l := &Log{file: file, record: make([]byte, record), size: int64(room)}
	if room > 0 {
		_, err = file.Write(make([]byte, room))
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, fmt.Errorf("make a log: %w", err)
	}
	return l, nil
}

// Append writes a record and returns when it is synced.
func (l *Log) Append() error {
	if l.size > 0 && l.at+int64(len(l.record)) > l.size {
		l.at = 0
	}
	if _, err := l.file.WriteAt(l.record, l.at); err != nil {
		return err
	}
	l.at += int64(len(l.record))
	return syncData(l.file)
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }
