package durable

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/stintgo/stint/bench/measure"
)

// keeper keeps tasks. Its methods may be called by many goroutines.
type keeper interface {
	// submit adds a task and returns when the system has answered that it has it.
	// The stamp is part of the payload.
	submit(stamp int64) error
	// unsettled returns the number of tasks that are not settled.
	unsettled() (int, error)
}

// batcher has a way that is made for many tasks at a time.
type batcher interface {
	keeper
	submitBatch(n int) error
}

// system runs the tasks that it keeps, too.
type system interface {
	batcher
	// work begins to call handled for each task, with its stamp, from workers
	// goroutines.
	work(handled func(stamp int64)) error
	// settled returns when all that was handled is settled, in the way that the
	// subject's name says. It may end the workers.
	settled() error
}

// opener opens a keeper for one turn, and has the turn clean up after it.
type opener func(*turn) (keeper, error)

// keeps returns an error if there are not n tasks that are not settled.
func keeps(k keeper, n int) error {
	unsettled, err := k.unsettled()
	if err == nil && unsettled != n {
		err = fmt.Errorf("%d tasks are unsettled, want %d", unsettled, n)
	}
	return err
}

// args are a payload in JSON. It has about a hundred bytes, of which the stamp
// may be one or nineteen.
type args struct {
	Stamp int64  `json:"stamp"`
	Text  string `json:"text"`
}

// payloadSize is for systems whose payloads are bytes.
const payloadSize = 100

func newArgs(stamp int64) args { return args{Stamp: stamp, Text: strings.Repeat("x", payloadSize-30)} }

// submitAll submits n tasks from a number of callers, and returns the first error.
func submitAll(k keeper, n, callers int) error {
	var failed atomic.Pointer[error]
	measure.Spread(n, callers, func(_, share int) int {
		for range share {
			if err := k.submit(0); err != nil {
				failed.CompareAndSwap(nil, &err)
				return 0
			}
		}
		return share
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// submitBatches has one caller submit n tasks in batches.
func submitBatches(k keeper, n int) error {
	for left := n; left > 0; left -= batch {
		if err := k.(batcher).submitBatch(min(left, batch)); err != nil {
			return err
		}
	}
	return nil
}
