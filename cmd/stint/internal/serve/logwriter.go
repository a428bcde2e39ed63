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

// logWriter writes to the log of an attempt, and tells its readers. While the attempt
// runs, the end of an output that is too long is in a file of its own: a log only grows,
// so that its readers can go on where they are.
type logWriter struct {
	file   *os.File
	logs   *logs
	id     queue.ID
	tailed bool // there is that file
}

var _ isolate.TailKeeper = (*logWriter)(nil)

// Write is as [io.Writer] says.
func (w *logWriter) Write(p []byte) (int, error) {
	defer w.logs.readers.wake(w.id)
	return w.file.Write(p)
}

// KeepTail is as [isolate.TailKeeper] says. What it has written survives the end of this
// process, and need not survive the loss of power.
func (w *logWriter) KeepTail(text []byte) error {
	const owner = 0o600
	name := server.LogName(w.id) + tailSuffix
	if err := w.logs.root.WriteFile(name+newSuffix, text, owner); err != nil {
		return err
	}
	w.tailed = true
	return w.logs.root.Rename(name+newSuffix, name)
}

// Close is as [io.Closer] says. The tail is in the log by now.
func (w *logWriter) Close() error {
	err := w.file.Close()
	if w.tailed {
		err = errors.Join(err, w.logs.root.Remove(server.LogName(w.id)+tailSuffix))
	}
	return err
}

// What the names of files beside a log end with: the tail of an attempt that runs, and
// a file that is being written.
const (
	tailSuffix = ".tail"
	newSuffix  = ".new"
)

// recoverTails adds to the logs what a server that was killed had kept of the ends of
// outputs. A log that cannot be written keeps its tail for the next start.
func (l *logs) recoverTails() {
	entries, err := fs.ReadDir(l.files(), ".")
	if err != nil {
		return // tidy looks as well, and says so
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), tailSuffix+newSuffix) {
			_ = l.root.Remove(entry.Name()) // half written; the one before it counts
		}
		name, isTail := strings.CutSuffix(entry.Name(), tailSuffix)
		if !isTail {
			continue
		}
		if err := l.recoverTail(name); err != nil {
			l.logger.Error("the end of an output is not in its log, but beside it",
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
	if errors.Is(err, fs.ErrNotExist) { // its task is forgotten
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
