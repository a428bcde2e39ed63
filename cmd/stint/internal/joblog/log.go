package joblog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/disk"
)

// Errors of [Open].
var (
	// ErrBusy answers a log that another run holds.
	ErrBusy = errors.New("another run is writing this job log: wait for it, or use another --joblog")
	// ErrExists answers a log with jobs in it where the run is not a resumed
	// one. GNU parallel would overwrite it, and the work of a night with it.
	ErrExists = errors.New("holds finished jobs already: --resume goes on after them, or remove the file")
)

// syncEvery is the least time between the starts of two syncs, which bounds
// them to 100 a second however many jobs end. It is also about what a power
// failure can lose: jobs that ended in it are run again. A killed process loses
// nothing: lines are written at once.
const syncEvery = 10 * time.Millisecond

// Config says how a log is opened. The zero value begins a new log.
type Config struct {
	Resume bool  // go on with a log that has jobs in it
	Failed bool  // with Resume: run jobs again that failed
	Match  Match // with Resume: what makes a job the same job
	// Before, if set, is called before each sync, to make durable what the
	// lines promise: the jobs' output. It narrows what a power failure can do
	// to the order of the two; only holding lines back would close the gap, and
	// a killed process would lose those.
	Before func() error
	// SyncDir makes the names in a directory durable; nil is [disk.SyncDir].
	SyncDir func(dir string) error
}

// Log is a job log that is open, and locked against other runs. Its methods
// may be called from any goroutine.
type Log struct {
	file   *os.File
	before func() error
	// newIn is the directory that a new log is in, until its name is on disk
	// too; used by whoever syncs.
	newIn   string
	syncDir func(dir string) error
	done    *doneSet // nil unless resumed; used by one goroutine, the reader

	dirty   chan struct{} // holds a token while lines wait for a sync
	stop    chan struct{}
	stopped chan struct{}

	mu   sync.Mutex
	size int64  // the length of the file's sound part; guarded by mu
	buf  []byte // guarded by mu
	err  error  // the first that occurred, and the answer from then on; guarded by mu
}

// Open opens or creates the log at path and takes the lock on it, which lasts
// until [Log.Close] or the process's end. Where a crash has torn the last line
// the line is removed.
func Open(path string, cfg Config) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open job log: %w", err)
	}
	l := &Log{
		file: file, before: cfg.Before, syncDir: cfg.SyncDir,
		dirty: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	if l.syncDir == nil {
		l.syncDir = disk.SyncDir
	}
	if err := l.load(cfg); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("job log %s: %w", path, err)
	}
	go l.commit()
	return l, nil
}

func (l *Log) load(cfg Config) error {
	info, err := l.file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotFile
	}
	if err != nil {
		return err
	}
	err = syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}
	if err != nil {
		return os.NewSyscallError("flock", err)
	}
	done := newDoneSet(cfg.Match)
	good, err := done.read(l.file)
	if err != nil {
		return err
	}
	if !cfg.Resume && len(done.jobs) > 0 {
		return ErrExists
	}
	if err := l.file.Truncate(good); err != nil {
		return fmt.Errorf("remove the torn last line: %w", err)
	}
	l.size = good
	if cfg.Resume {
		done.prepare(cfg.Failed)
		l.done = done
	}
	if good == 0 {
		l.newIn = filepath.Dir(l.file.Name())
		return l.write([]byte(header))
	}
	return nil
}

// Peek reads the log at path without taking or changing anything, for a look at
// what a resumed run would do. Only Done and Close are of use then. A log that
// does not exist is an empty one.
func Peek(path string, cfg Config) (*Log, error) {
	done := newDoneSet(cfg.Match)
	file, err := os.Open(path)
	if err == nil {
		_, err = done.read(file)
		_ = file.Close() // nothing is written to it
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("job log %s: %w", path, err)
	case !cfg.Resume && len(done.jobs) > 0:
		return nil, fmt.Errorf("job log %s: %w", path, ErrExists)
	}
	done.prepare(cfg.Failed)
	return &Log{done: done}, nil
}

// Done reports whether the log has the job as done, and so is not to be run.
// The error wraps [ErrChanged]. It is for one goroutine, which asks for each
// job once.
func (l *Log) Done(seq int, command string) (bool, error) {
	if l == nil || l.done == nil {
		return false, nil
	}
	return l.done.take(seq, command)
}

// Append writes the line of a job that has finished, and returns once a killed
// process could no longer lose it. The sync that a power failure needs follows
// in the background, one for all lines written meanwhile; [Log.Close] waits for
// it. An error stays: nothing is appended after it.
func (l *Log) Append(record *Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = record.appendLine(l.buf[:0])
	return l.write(l.buf)
}

// write appends whole lines or nothing: where the disk is full halfway, what
// was written of them is taken back. l.mu is held, but for the header.
func (l *Log) write(lines []byte) error {
	if l.err != nil {
		return l.err
	}
	if _, err := l.file.Write(lines); err != nil {
		l.err = fmt.Errorf("write job log: %w", err)
		_ = l.file.Truncate(l.size) // failing that, the next Open does it
		return l.err
	}
	l.size += int64(len(lines))
	select {
	case l.dirty <- struct{}{}:
	default: // the sync that is due covers these lines too
	}
	return nil
}

// commit is the loop that syncs, until stop is closed.
func (l *Log) commit() {
	defer close(l.stopped)
	for {
		select {
		case <-l.dirty:
		case <-l.stop:
			return
		}
		l.sync()
		select {
		case <-time.After(syncEvery):
		case <-l.stop:
			return
		}
	}
}

func (l *Log) sync() {
	var err error
	if l.before != nil {
		err = l.before()
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err == nil && l.newIn != "" {
		err = l.syncDir(l.newIn)
		l.newIn = ""
	}
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("sync job log: %w", err)
	}
}

// Close syncs what has been appended, gives up the lock and returns the first
// error of the log's life. A nil Log is closed already, and
// so is one that was only peeked at.
func (l *Log) Close() error {
	if l == nil || l.file == nil {
		return nil
	}
	close(l.stop)
	<-l.stopped
	l.sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.err
	if l.err = errClosed; err == nil {
		err = l.file.Close()
	} else {
		_ = l.file.Close()
	}
	return err
}

var errNotFile = errors.New("not a regular file, which it must be to be resumed from")

var errClosed = errors.New("job log is closed")

var _ io.Closer = (*Log)(nil)
