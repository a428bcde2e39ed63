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
	// ErrBusy: another run has the log open.
	ErrBusy = errors.New("another run is writing this job log: wait for it, or use another --joblog")
	// ErrExists: the log has jobs and the run is not resumed. GNU parallel would
	// overwrite the log, and lose a night's work with it.
	ErrExists = errors.New("it already has finished jobs: --resume continues after them; or remove the file")
)

// syncEvery is the minimum time between the starts of two syncs, which limits them to 100
// per second. It is also about what a power failure can lose: jobs that ended in that
// time run again. A killed process loses nothing, since lines are written at once.
const syncEvery = 10 * time.Millisecond

// Config says how to open a log. The zero value begins a new log.
type Config struct {
	Resume bool  // continue a log that has jobs
	Failed bool  // with Resume: run failed jobs again
	Match  Match // with Resume: how to recognize a job
	// Before, if set, is called before each sync, to make the output of the logged jobs
	// durable. It makes it less likely that a power failure loses the output of a logged
	// job; only writing lines later would exclude that, and a killed process would lose
	// those lines.
	Before func() error
	// SyncDir makes the names in a directory durable; nil is [disk.SyncDir].
	SyncDir func(dir string) error
}

// Log is an open job log, locked against other runs. Its methods are safe for concurrent
// use.
type Log struct {
	file   *os.File
	before func() error
	// newIn is the directory of a new log until its name is durable; owned by the
	// goroutine that syncs.
	newIn   string
	syncDir func(dir string) error
	done    *doneSet // nil unless resumed; owned by one goroutine, the reader

	dirty   chan struct{} // holds a token while lines wait for a sync
	stop    chan struct{}
	stopped chan struct{}

	mu   sync.Mutex
	size int64  // the length of the file's valid part; guarded by mu
	buf  []byte // guarded by mu
	err  error  // the first error, returned from then on; guarded by mu
	// numbers has the jobs whose lines get a number that is not theirs; see [MatchCommand].
	// Guarded by mu.
	numbers map[int]int
}

// Open opens or creates the log at path and locks it until [Log.Close] or the end of the
// process. It removes an incomplete last line, which a crash leaves.
func Open(path string, cfg Config) (*Log, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("job log: %w; name another file with --joblog", err)
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

// Peek reads the log at path without locking or changing it, for a preview of a resumed
// run. Only Done and Close may be called then. A missing log counts as empty.
func Peek(path string, cfg Config) (*Log, error) {
	done := newDoneSet(cfg.Match)
	file, err := os.Open(path)
	if err == nil {
		_, err = done.read(file)
		_ = file.Close() // never written to
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

// Done reports whether the log has the job as done. The error wraps [ErrChanged]. Done is
// for one goroutine, which calls it once per job.
func (l *Log) Done(seq int, command string) (bool, error) {
	if l == nil || l.done == nil {
		return false, nil
	}
	number, done, err := l.done.take(seq, command)
	if number != seq && !done {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.numbers == nil {
			l.numbers = map[int]int{}
		}
		l.numbers[seq] = number
	}
	return done, err
}

// Unlisted returns how many jobs of the log the list does not have, if jobs are matched by
// their numbers. Call it after [Log.Done] for the whole list, in the same goroutine.
func (l *Log) Unlisted() int {
	if l == nil || l.done == nil || l.done.match != MatchSeq {
		return 0
	}
	return len(l.done.jobs)
}

// Append writes the line of a finished job, and returns once a killed process can no
// longer lose it. The sync against a power failure follows in the background, one for all
// lines written meanwhile; [Log.Close] waits for it. After an error, Append always fails.
// Under [MatchCommand] the line may have another number than the record.
func (l *Log) Append(record *Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := *record
	if number, ok := l.numbers[record.Seq]; ok {
		line.Seq = number
		delete(l.numbers, record.Seq) // its last line
	}
	l.buf = line.appendLine(l.buf[:0])
	return l.write(l.buf)
}

// write appends whole lines or nothing: if the disk is full, an incomplete line is
// removed. The caller must hold mu, except for the header.
func (l *Log) write(lines []byte) error {
	if l.err != nil {
		return l.err
	}
	if _, err := l.file.Write(lines); err != nil {
		l.err = fmt.Errorf("write job log: %w", err)
		_ = l.file.Truncate(l.size) // if it fails, the next Open truncates
		return l.err
	}
	l.size += int64(len(lines))
	select {
	case l.dirty <- struct{}{}:
	default: // the pending sync covers these lines too
	}
	return nil
}

// commit syncs until stop is closed.
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

// Close syncs the appended lines, releases the lock and returns the first error of the
// log. Closing a nil Log, or one from [Peek], does nothing.
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

var errNotFile = errors.New("not a regular file, which it must be to be resumed from; name another file with --joblog")

var errClosed = errors.New("job log is closed")

var _ io.Closer = (*Log)(nil)
