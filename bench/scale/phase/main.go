// Command phase does one phase of the suite scale, and prints what it found as
// JSON, by the names of that suite's readings.
//
//	phase -store S -fill 10000000   submits that number of tasks and closes the store
//	phase -store S -work 60000      opens it, and submits, runs and settles that number
//	phase -store S -drain 1000000   runs and settles that number
//
// S is a directory or the URL of a server. With -fill -busy one task of ten has a key whose
// limit is 1; a later -work holds one of them in its handler, and -drain raises the limit.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"
)

// memoryLimit is the memory limit that a program with millions of tasks has to set: without
// it the collector lets the heap grow to twice the live memory. The rest of 2 GiB is for
// memory that Go does not count, mainly the buffers of the database in C.
const memoryLimit = 1820 << 20

func main() {
	o := options{}
	flag.StringVar(&o.store, "store", "", "directory or URL of the store")
	flag.BoolVar(&o.busy, "busy", false, "give one task of ten a key whose limit is 1")
	flag.IntVar(&o.fill, "fill", 0, "submit this number of tasks")
	flag.IntVar(&o.work, "work", 0, "submit, run and settle this number of tasks")
	flag.IntVar(&o.drain, "drain", 0, "run and settle this number of tasks")
	flag.Parse()
	debug.SetMemoryLimit(memoryLimit)
	found, err := phase(o)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "phase:", err)
		os.Exit(1)
	}
}

type options struct {
	store             string
	busy              bool
	fill, work, drain int
}

// phase does what was asked for, on a store that it opens and closes.
func phase(o options) (found map[string]float64, err error) {
	most := max(o.fill, o.work, o.drain)
	if o.store == "" || min(o.fill, o.work, o.drain) < 0 || most == 0 || most != o.fill+o.work+o.drain {
		return nil, errors.New("want -store, and one of -fill, -work and -drain")
	}
	start := time.Now()
	store, err := open(o.store)
	if err != nil {
		return nil, err
	}
	found = map[string]float64{"opening": float64(time.Since(start))}
	defer func() { err = errors.Join(err, store.Close()) }()
	q := queue.New(store, queue.Config{})
	// What is resident when it is open, and the peak of all that follows.
	if err := resident(found); err != nil {
		return nil, err
	}
	opened := found["memory"]
	switch {
	case o.fill > 0:
		found["rate"], err = filled(q, o.fill, o.busy)
		return found, errors.Join(err, resident(found))
	case o.work > 0:
		found["rate"], err = lives(q, o.work)
	default:
		found["rate"], err = drained(q, o.drain)
	}
	err = errors.Join(err, resident(found))
	found["memory"] = opened
	return found, err
}

// open opens a store, as its leader if it is on a server.
func open(at string) (queue.Store, error) {
	switch scheme, _, _ := strings.Cut(at, "://"); scheme {
	case "postgres":
		return pgstore.Open(context.Background(), at, pgstore.Config{})
	case "redis":
		return redisstore.Open(context.Background(), at, redisstore.Config{})
	default:
		return filestore.Open(at, filestore.Config{})
	}
}
