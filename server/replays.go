package server

import (
	"container/list"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// Bounds of what is remembered of calls: the oldest go first.
const (
	replaysMost  = 4096
	replaysEach  = 32 // of one caller, so that one who was cut off is not crowded out by the others
	replayKeyMax = 64 // bytes
)

// replays are the calls that were done lately and would not be the same if they
// were done again: a second claim takes other tasks, and those of the first one
// would be nobody's until their leases are over, and count as crashed. The client
// cannot know whether a call was done whose answer it did not get, so it repeats
// it under the same key, and is told what was done.
//
// What is kept is how to tell it, which takes the room of a few IDs, whatever the
// size of the answer was. It ends with the process.
type replays struct {
	mu    sync.Mutex
	calls map[string]*replay   // by their keys
	done  list.List            // of *replay, the oldest first
	of    map[string][]*replay // those of each caller that are done, the oldest first
}

func newReplays() *replays {
	return &replays{calls: make(map[string]*replay), of: make(map[string][]*replay)}
}

// fingerprint is what a call asks for, so that a key stands for no other call.
type fingerprint [sha256.Size]byte

// repeat tells again what a call has done.
type repeat func(ctx context.Context, now time.Time) answer

// replay is one call.
type replay struct {
	key  string
	sum  fingerprint
	done chan struct{}

	// Set when it is done.
	caller string
	again  repeat // nil if nothing was done
	place  *list.Element
}

// do returns the answer to a call at a time: first is how to do it. That returns
// who has called, or "" if anybody may have, and how to tell it again, which is
// nil if there is nothing to tell.
func (r *replays) do(
	ctx context.Context, now time.Time, key string, sum fingerprint, first func() (a answer, caller string, again repeat),
) answer {
	if len(key) > replayKeyMax {
		return encoded(nil, fmt.Errorf("%w: the key of the call is longer than %d bytes", queue.ErrInvalid, replayKeyMax))
	}
	for {
		known, mine := r.find(key, sum)
		switch {
		case mine:
			return r.first(known, first)
		case known.sum != sum:
			return problem(&wire.Problem{
				Title: "the key is that of another call", Status: http.StatusUnprocessableEntity, Code: "key_reused",
				Detail: "this " + wire.Key + " has come with another call: choose a new one for each",
			})
		}
		select {
		case <-known.done:
			if known.again != nil {
				return known.again(ctx, now)
			}
		case <-ctx.Done():
			return encoded(nil, context.Cause(ctx))
		}
	}
}

// find returns the call with a key, and whether the caller is to do it.
func (r *replays) find(key string, sum fingerprint) (known *replay, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.calls[key]; known != nil {
		return known, false
	}
	known = &replay{key: key, sum: sum, done: make(chan struct{})}
	r.calls[key] = known
	return known, true
}

// first does a call, and keeps how to tell what it has done.
func (r *replays) first(k *replay, call func() (answer, string, repeat)) (a answer) {
	defer func() { // also if it panics
		r.mu.Lock()
		defer r.mu.Unlock()
		if k.again != nil {
			r.keep(k)
		} else {
			delete(r.calls, k.key)
		}
		close(k.done)
	}()
	a, k.caller, k.again = call()
	return a
}

// keep makes room for a call that is done. The lock is held.
func (r *replays) keep(k *replay) {
	k.place = r.done.PushBack(k)
	mine := append(r.of[k.caller], k)
	r.of[k.caller] = mine
	if k.caller != "" && len(mine) > replaysEach {
		r.drop(mine[0])
	}
	if r.done.Len() > replaysMost {
		r.drop(r.done.Front().Value.(*replay))
	}
}

// drop forgets a call, which is the oldest of its caller. The lock is held.
func (r *replays) drop(k *replay) {
	delete(r.calls, k.key)
	r.done.Remove(k.place)
	mine := r.of[k.caller]
	mine[0] = nil
	if r.of[k.caller] = mine[1:]; len(mine) == 1 {
		delete(r.of, k.caller)
	}
}
