// Package durable measures the embedded durable queue against those that Go
// programs use today: what a task costs until it is safe, until it is settled,
// and until it starts.
//
// What a system promises when it has answered differs, so it is in the name
// of each subject: "synced" survives the loss of power, "not synced" may lose
// what it answered in the last second or more, "memory" loses everything with
// its process. Only subjects that promise the same are comparable.
package durable

import (
	"os"
	"time"

	"github.com/stintgo/stint/internal/dbserver"

	"github.com/stintgo/stint/bench/disk"
	"github.com/stintgo/stint/bench/measure"
)

// The names of the subjects, as tables and goals write them.
const (
	ours          = "stint filestore (synced)"
	oursMemory    = "stint memstore (memory)"
	barePebble    = "bare Pebble (synced)"
	asynqAlways   = "asynq, tuned, Redis always (synced)"
	asynqEverySec = "asynq, tuned, Redis everysec (not synced)"
	asynqDefault  = "asynq, Redis everysec (not synced)"
	riverTuned    = "River, tuned, PostgreSQL (synced)"
	riverDefault  = "River, PostgreSQL (synced)"
	natsSynced    = "NATS JetStream (synced)"
	natsNotSynced = "NATS JetStream (not synced)"
	backliteFull  = "backlite, SQLite FULL (synced)"
	growingLog    = "disk, growing log (synced)"
	writtenOver   = "disk, log written over (floor)"
)

// rate is tasks per second.
const rate = "rate"

const (
	warmUp  = 100 // tasks before the clock starts
	callers = 64  // goroutines that submit
	workers = 64  // tasks that run at once
	batch   = 1000
)

// Systems are what the subjects run on.
type Systems struct {
	dir      string // has a directory for each turn
	postgres *dbserver.Postgres
}

// Prepare installs the peers' databases if they are missing, and makes in dir what
// all turns use.
func Prepare(dir string) (*Systems, error) {
	// PostgreSQL does not run as root, and the account that runs it must be able
	// to enter dir.
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // nothing in it is secret
		return nil, err
	}
	if err := dbserver.NeedRedis(); err != nil {
		return nil, err
	}
	postgres, err := dbserver.NewPostgres(dir, migrateRiver)
	if err != nil {
		return nil, err
	}
	return &Systems{dir, postgres}, nil
}

// Cases are the rows of this suite.
func (s *Systems) Cases() []measure.Case {
	return append([]measure.Case{
		s.submitMany(), s.submitBatches(), s.submitOne(),
		s.lifecycle(), s.lifecycleBatches(), s.latency(),
		s.limits("filestore", openStint), s.limits("memstore", openStintMemory),
	}, s.hosted()...)
}

// turn is one turn of a subject, with a directory of its own.
type turn struct {
	*measure.Stage
	*Systems
	dir string
}

// probe is a subject's turn: on a directory of its own, when all that others
// have written is on the disk.
func (s *Systems) probe(measured func(*turn) (measure.Values, error)) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		dir, err := os.MkdirTemp(s.dir, "turn-")
		if err != nil {
			return nil, err
		}
		st.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // as in Prepare
			return nil, err
		}
		if !st.Once {
			if err := disk.CheckReal(dir); err != nil {
				return nil, err
			}
			disk.Settle()
		}
		return measured(&turn{st, s, dir})
	}
}

// paced returns how many of n were done in a second.
func paced(n int, took time.Duration) measure.Values {
	return measure.Values{rate: float64(n) / took.Seconds()}
}
