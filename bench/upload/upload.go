// Package upload measures servers and clients of uploads on loopback. One client sends to all
// servers, and all clients send to one server, so that only one side differs; the bare servers
// are the least that a Go program does to receive a file.
package upload

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stintgo/stint/bench/js"
	"github.com/stintgo/stint/bench/measure"
)

// The subjects. Stint syncs a file before it answers the last request, so the bare server is
// measured with a sync as well. Of the others none syncs.
const (
	ours       = "stint"
	tusd       = "tusd"
	bare       = "bare server"
	bareSynced = "bare server, synced"
)

const (
	large     = 1 << 30   // bytes of the large file
	parts     = 4         // of it, sent at once
	smallSize = 256 << 10 // bytes of a small file
	smallMany = 2000
	senders   = 8 // that send small files at once
)

// Systems has the directory in which servers keep files, what is sent to them, and the
// directory of tus.mjs.
type Systems struct {
	dir    string
	source *source
	node   string
}

// Prepare returns the systems; dir is on the disk to measure.
func Prepare(dir string) (*Systems, error) {
	packages := filepath.Join(dir, "node")
	if err := os.Mkdir(packages, 0o750); err != nil {
		return nil, err
	}
	node, err := js.Prepare(packages)
	if err != nil {
		return nil, err
	}
	return &Systems{dir, newSource(), node.Dir()}, nil
}

// Cases returns the cases.
func (s *Systems) Cases() []measure.Case {
	speed := []measure.Reading{{Name: "rate", Unit: "MB/s"}}
	return []measure.Case{
		{
			Name: "1 GiB in one request", Ours: ours, Readings: speed,
			Goals: []string{"rate ≥ 0.95× tusd", "rate ≥ 0.95× bare server, synced"},
			Subjects: []measure.Subject{
				{Name: ours, Probe: s.probe(newStint, whole)},
				{Name: tusd, Probe: s.probe(newTusd, whole)},
				{Name: bare, Probe: s.probe(newBare(false, false), put)},
				{Name: bareSynced, Probe: s.probe(newBare(true, false), put)},
			},
		},
		{
			Name: "1 GiB in four parts at once", Ours: ours, Readings: speed,
			Goals: []string{"rate ≥ 1.25× tusd"},
			Subjects: []measure.Subject{
				{Name: ours, Probe: s.probe(newStint, inParts)},
				{Name: tusd, Probe: s.probe(newTusd, inParts)},
			},
		},
		{
			Name: "1 GiB whose SHA-256 is compared", Ours: ours, Readings: speed,
			Goals: []string{"rate ≥ 0.9× bare server, synced"},
			Subjects: []measure.Subject{
				{Name: ours, Probe: s.probe(newStint, hashed)},
				{Name: bareSynced, Probe: s.probe(newBare(true, true), put)},
			},
		},
		{
			Name: "2,000 files of 256 KiB, 8 at once", Ours: ours,
			Readings: []measure.Reading{{Name: "rate", Unit: "/s"}},
			Goals:    []string{"rate ≥ 1.3× tusd"},
			Subjects: []measure.Subject{
				{Name: ours, Probe: s.small(newStint, whole)},
				{Name: tusd, Probe: s.small(newTusd, whole)},
				{Name: bare, Probe: s.small(newBare(false, false), put)},
				{Name: bareSynced, Probe: s.small(newBare(true, false), put)},
			},
		},
		s.clients(),
	}
}

// maker starts a server on a directory.
type maker func(dir string) (*server, error)

// sender sends a file of a size, named by a number.
type sender func(c *client, size int64, number int) error

// probe measures the speed of one large file.
func (s *Systems) probe(start maker, send sender) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		size := int64(large)
		if st.Once {
			size = 8 << 20
		}
		c, err := s.connect(st, start)
		if err != nil {
			return nil, err
		}
		if _, err := c.source.sum(size); err != nil { // so that it is known
			return nil, err
		}
		took, err := timed(func() error { return send(c, size, 0) })
		return measure.Values{"rate": float64(size) / 1e6 / took.Seconds()}, err
	}
}

// small measures how many small files arrive in a second.
func (s *Systems) small(start maker, send sender) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		n := st.Size(smallMany)
		c, err := s.connect(st, start)
		if err != nil {
			return nil, err
		}
		took, err := timed(func() error { return several(senders, n, func(i int) error { return send(c, smallSize, i) }) })
		return measure.Values{"rate": float64(n) / took.Seconds()}, err
	}
}

func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

// several calls do for the numbers below n, some at once, and returns the first error.
func several(at, n int, do func(i int) error) error {
	numbers, failed := make(chan int), make(chan error, at)
	var wg sync.WaitGroup
	for range at {
		wg.Go(func() {
			for i := range numbers {
				if err := do(i); err != nil {
					select {
					case failed <- fmt.Errorf("file or part %d: %w", i, err):
					default:
					}
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	close(failed)
	return <-failed
}
