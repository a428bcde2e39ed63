package filestore

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// options returns the options of the database. Its memory is CacheSize and, under load,
// five times MemTableSize.
func options(fs vfs.FS, f *failStop, log *slog.Logger) *pebble.Options {
	return &pebble.Options{
		FS:                 &opFS{lockedFS{fs}, f.do, logAhead},
		FormatMajorVersion: pebble.FormatNewest,
		LoggerAndTracer:    logger{f, log},
		EventListener:      listener(log),

		MemTableSize:                32 << 20,
		MemTableStopWritesThreshold: 4,
		// Pebble counts memtables as a part of the cache. Under load there are two of
		// them, which leaves 32 MiB for blocks; without these, each Get reads and
		// decompresses the index of a table.
		CacheSize:     96 << 20,
		MaxOpenFiles:  256,
		LBaseMaxBytes: 64 << 20,
		// Twice the default: most rows are replaced soon, and the later they are
		// compacted, the fewer are left.
		L0CompactionThreshold: 8,
		// The default of 12 stops a burst of submits. A queue reads by key, which many
		// small tables slow down little.
		L0StopWritesThreshold: 1000,
		BytesPerSync:          512 << 10,
		WALBytesPerSync:       0, // each batch is synced
		// The reader of statistics retries a damaged table without end.
		DisableTableStats: true,
	}
}

// logger logs Pebble's errors, and discards its other messages.
type logger struct {
	failStop *failStop
	log      *slog.Logger
}

var _ pebble.LoggerAndTracer = logger{}

// Infof is as [pebble.Logger] says.
func (l logger) Infof(string, ...any) {}

// Errorf is as [pebble.Logger] says.
func (l logger) Errorf(format string, args ...any) {
	l.log.Error("the database reports", slog.String("error", firstLine(fmt.Sprintf(format, args...))))
}

// Fatalf is as [pebble.Logger] says, but the process continues without the database. It
// never returns, because Pebble would continue too.
func (l logger) Fatalf(format string, args ...any) {
	l.failStop.fail(fmt.Errorf("the database gave up: %s", firstLine(fmt.Sprintf(format, args...))))
	select {}
}

// Eventf is as [pebble.LoggerAndTracer] says.
func (l logger) Eventf(context.Context, string, ...any) {}

// IsTracingEnabled is as [pebble.LoggerAndTracer] says.
func (l logger) IsTracingEnabled(context.Context) bool { return false }

// listener logs errors in the background. It sets all functions whose default ends the
// process.
func listener(log *slog.Logger) *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: func(err error) {
			log.Error("a background job of the database failed", slog.String("error", brief(err).Error()))
		},
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			log.Error("a file of the store is damaged",
				slog.String("file", info.Path), slog.String("error", brief(info.Details).Error()))
		},
		DiskSlow: func(info pebble.DiskSlowInfo) {
			log.Warn("the disk is slow", slog.String("file", info.Path), slog.Duration("took", info.Duration))
		},
		WriteStallBegin: func(info pebble.WriteStallBeginInfo) {
			log.Warn("writing waits for the database to tidy up", slog.String("reason", info.Reason))
		},
	}
}

// briefError shortens the message of an error of the database, which can be pages long.
type briefError struct{ error }

func brief(err error) error {
	if err == nil {
		return nil
	}
	return briefError{err}
}

func (e briefError) Error() string { return firstLine(e.error.Error()) }

// Unwrap returns the error of the database.
func (e briefError) Unwrap() error { return e.error }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
