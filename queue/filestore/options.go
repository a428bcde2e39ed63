package filestore

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// options are those of the database. Its memory is five times MemTableSize, which
// is used under load only, and CacheSize.
func options(fs vfs.FS, g *guard, log *slog.Logger) *pebble.Options {
	return &pebble.Options{
		FS:                 &opFS{lockedFS{fs}, g.do, logAhead},
		FormatMajorVersion: pebble.FormatNewest,
		LoggerAndTracer:    logger{g, log},
		EventListener:      listener(log),

		MemTableSize:                32 << 20,
		MemTableStopWritesThreshold: 4,
		// Pebble counts memtables as a part of the cache. Under load there are two of
		// them, so 32 MiB are left for blocks; with none, each Get reads and
		// decompresses the index of a table.
		CacheSize:     96 << 20,
		MaxOpenFiles:  256,
		LBaseMaxBytes: 64 << 20,
		// Twice the default: most rows are replaced soon, and the later they are
		// compacted the fewer of them are left.
		L0CompactionThreshold: 8,
		// The default of 12 stops a burst of submits; a queue is read by its keys,
		// which many small tables slow down little.
		L0StopWritesThreshold: 1000,
		BytesPerSync:          512 << 10,
		WALBytesPerSync:       0, // each batch is synced
		// What reads tables for statistics tries a damaged one again for ever.
		DisableTableStats: true,
	}
}

// logger passes on Pebble's errors, and discards its other messages.
type logger struct {
	guard *guard
	log   *slog.Logger
}

var _ pebble.LoggerAndTracer = logger{}

// Infof is as [pebble.Logger] says.
func (l logger) Infof(string, ...any) {}

// Errorf is as [pebble.Logger] says.
func (l logger) Errorf(format string, args ...any) {
	l.log.Error("the database reports", slog.String("error", firstLine(fmt.Sprintf(format, args...))))
}

// Fatalf is as [pebble.Logger] says, but that the process goes on, without the
// database. It never returns: Pebble would take that for a success.
func (l logger) Fatalf(format string, args ...any) {
	l.guard.fail(fmt.Errorf("the database gave up: %s", firstLine(fmt.Sprintf(format, args...))))
	select {}
}

// Eventf is as [pebble.LoggerAndTracer] says.
func (l logger) Eventf(context.Context, string, ...any) {}

// IsTracingEnabled is as [pebble.LoggerAndTracer] says.
func (l logger) IsTracingEnabled(context.Context) bool { return false }

// listener logs what goes wrong in the background. All of it is set that has a
// default that ends the process.
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

// briefError is an error of the database, whose message can be pages long.
type briefError struct{ error }

func brief(err error) error {
	if err == nil {
		return nil
	}
	return briefError{err}
}

func (e briefError) Error() string { return firstLine(e.error.Error()) }

// Unwrap is for errors.Is and errors.As.
func (e briefError) Unwrap() error { return e.error }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
