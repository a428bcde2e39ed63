package serve

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/server"
)

// logWriter writes to the log of an attempt, and notifies its readers. While the attempt
// runs, the tail of an output that is too long is stored in a file of its own: a log only
// grows, so that readers keep their position.
type logWriter struct {
	file   *os.File
	logs   *logs
	id     queue.ID
	tailed bool // the tail's file exists
}

var _ isolate.TailKeeper = (*logWriter)(nil)

// Write implements [io.Writer].
func (w *logWriter) Write(p []byte) (int, error) {
	defer w.logs.readers.wake(w.id)
	return w.file.Write(p)
}

// KeepTail implements [isolate.TailKeeper]. The tail survives the end of this process,
// but not necessarily a power failure.
func (w *logWriter) KeepTail(text []byte) error {
	const owner = 0o600
	name := server.LogName(w.id) + tailSuffix
	if err := w.logs.root.WriteFile(name+newSuffix, text, owner); err != nil {
		return err
	}
	w.tailed = true
	return w.logs.root.Rename(name+newSuffix, name)
}

// Close implements [io.Closer]. By then the tail has been added to the log.
func (w *logWriter) Close() error {
	err := w.file.Close()
	if w.tailed {
		err = errors.Join(err, w.logs.root.Remove(server.LogName(w.id)+tailSuffix))
	}
	return err
}

// Endings of the names of files beside a log: the tail of a running attempt, and a file
// that is being written.
const (
	tailSuffix = ".tail"
	newSuffix  = ".new"
)

// recoverTails adds the tails that a killed server has left to their logs. If a log
// cannot be written, its tail is kept for the next start.
func (l *logs) recoverTails() {
	entries, err := fs.ReadDir(l.files(), ".")
	if err != nil {
		return // tidy reports the same error
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), tailSuffix+newSuffix) {
			_ = l.root.Remove(entry.Name()) // written in part; the tail before it is valid
		}
		name, isTail := strings.CutSuffix(entry.Name(), tailSuffix)
		if !isTail {
			continue
		}
		if err := l.recoverTail(name); err != nil {
			l.logger.Error("the end of an output is in a file beside its log",
				slog.String("file", entry.Name()), slog.Any("error", err))
		}
	}
}

// recoverTail adds the tail of a log to it.
func (l *logs) recoverTail(name string) error {
	text, err := l.root.ReadFile(name + tailSuffix)
	if err != nil {
		return err
	}
	f, err := l.root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) { // the task was forgotten
		return l.root.Remove(name + tailSuffix)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return l.root.Remove(name + tailSuffix)
}
