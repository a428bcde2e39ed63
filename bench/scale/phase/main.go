// Command phase does one phase of the suite scale, and prints what it found as
// JSON, by the names of that suite's readings.
//
//	phase -dir D -fill 10000000   submits so many tasks and closes the store
//	phase -dir D -work 60000      opens it, and submits, runs and settles so many
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// memoryLimit is what a program with so many tasks has to say: without it the
// collector lets the heap grow to twice of what lives. The rest of 2 GiB is for
// what Go does not count, the database's buffers in C above all.
const memoryLimit = 1820 << 20

func main() {
	dir := flag.String("dir", "", "directory of the store")
	fill := flag.Int("fill", 0, "submit so many tasks")
	work := flag.Int("work", 0, "submit, run and settle so many tasks")
	flag.Parse()
	debug.SetMemoryLimit(memoryLimit)
	found, err := phase(*dir, *fill, *work)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "phase:", err)
		os.Exit(1)
	}
}

// phase does what was asked for, on a store that it opens and closes.
func phase(dir string, fill, work int) (found map[string]float64, err error) {
	if dir == "" || (fill > 0) == (work > 0) {
		return nil, errors.New("want -dir, and one of -fill and -work")
	}
	start := time.Now()
	store, err := filestore.Open(dir, filestore.Config{})
	if err != nil {
		return nil, err
	}
	found = map[string]float64{"opening": float64(time.Since(start))}
	defer func() { err = errors.Join(err, store.Close()) }()
	q := queue.New(store, queue.Config{})
	if fill > 0 {
		found["rate"], err = filled(q, fill)
		if err != nil {
			return nil, err
		}
		return found, resident(found)
	}
	// What is resident when it is open, and the peak of all that follows.
	if err := resident(found); err != nil {
		return nil, err
	}
	open := found["memory"]
	if found["rate"], err = lives(q, work); err != nil {
		return nil, err
	}
	err = resident(found)
	found["memory"] = open
	return found, err
}
