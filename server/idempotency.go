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

// Limits of the cache; the oldest calls are dropped first.
const (
	cachedMost  = 4096 // calls that have a caller, and as many that have none
	cachedEach  = 32   // per caller, so that a caller that was cut off is not crowded out by others
	keyBytesMax = 64
)

// idempotencyCache has the recent calls that would have another effect if they were
// executed again: a second claim takes other tasks, and the tasks of the first would stay
// leased by no running worker until their leases expire, and count as crashed. A client
// that gets no answer cannot know whether its call was executed, so it repeats the call
// under the same key, and gets the answer of the first one.
//
// The cache keeps functions that rebuild answers. They keep no payloads, only an ID and a
// token for each claimed task. It is lost when the process ends.
type idempotencyCache struct {
	mu       sync.Mutex
	calls    map[string]*cachedCall   // by key
	done     list.List                // of *cachedCall with a caller, oldest first
	byCaller map[string][]*cachedCall // finished calls by caller, oldest first; "" is none
}

func newIdempotencyCache() *idempotencyCache {
	return &idempotencyCache{calls: make(map[string]*cachedCall), byCaller: make(map[string][]*cachedCall)}
}

// fingerprint is the hash of a call, which detects a key that is reused for another
// call.
type fingerprint [sha256.Size]byte

// replay answers a repetition of a call. ahead is that of the repetition, see [executor.arrive].
type replay func(ctx context.Context, now time.Time, ahead time.Duration) answer

// cachedCall is a call in the cache.
type cachedCall struct {
	key  string
	sum  fingerprint
	done chan struct{}

	// Set when done is closed.
	caller  string
	again   replay        // nil if the call was not executed
	element *list.Element // in done; nil without a caller
}

// do returns the answer to a call. The first call with a key calls execute, which
// returns the answer, the caller ("" if the call has none: such calls do not displace those of
// callers), and how to answer repetitions: nil if a repetition may execute the call.
func (c *idempotencyCache) do(
	ctx context.Context, now time.Time, ahead time.Duration, key string, sum fingerprint,
	execute func() (a answer, caller string, again replay),
) answer {
	if len(key) > keyBytesMax {
		return encoded(nil, fmt.Errorf("%w: the key of the call is longer than %d bytes", queue.ErrInvalid, keyBytesMax))
	}
	for {
		known, isNew := c.find(key, sum)
		switch {
		case isNew:
			return c.first(known, execute)
		case known.sum != sum:
			return problem(&wire.Problem{
				Title: "the key belongs to another call", Status: http.StatusUnprocessableEntity, Code: "key_reused",
				Detail: "this " + wire.Key + " was used for another call: choose a new one for each call",
			})
		}
		select {
		case <-known.done:
			if known.again != nil {
				return known.again(ctx, now, ahead)
			}
		case <-ctx.Done():
			return encoded(nil, context.Cause(ctx))
		}
	}
}

// find returns the call with a key. isNew reports whether it is new, so that the caller
// must execute it.
func (c *idempotencyCache) find(key string, sum fingerprint) (known *cachedCall, isNew bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.calls[key]; known != nil {
		return known, false
	}
	known = &cachedCall{key: key, sum: sum, done: make(chan struct{})}
	c.calls[key] = known
	return known, true
}

// first executes a call, and caches how to answer its repetitions.
func (c *idempotencyCache) first(k *cachedCall, call func() (answer, string, replay)) (a answer) {
	defer func() { // also if call panics
		c.mu.Lock()
		defer c.mu.Unlock()
		if k.again != nil {
			c.keep(k)
		} else {
			delete(c.calls, k.key)
		}
		close(k.done)
	}()
	a, k.caller, k.again = call()
	return a
}

// keep adds a finished call, and drops the oldest beyond the limits. The caller must
// hold mu.
func (c *idempotencyCache) keep(k *cachedCall) {
	ofCaller := append(c.byCaller[k.caller], k)
	c.byCaller[k.caller] = ofCaller
	if k.caller == "" {
		if len(ofCaller) > cachedMost {
			c.drop(ofCaller[0])
		}
		return
	}
	k.element = c.done.PushBack(k)
	if len(ofCaller) > cachedEach {
		c.drop(ofCaller[0])
	}
	if c.done.Len() > cachedMost {
		c.drop(c.done.Front().Value.(*cachedCall))
	}
}

// drop removes a call, which is the oldest of its caller. The caller must hold mu.
func (c *idempotencyCache) drop(k *cachedCall) {
	delete(c.calls, k.key)
	if k.element != nil {
		c.done.Remove(k.element)
	}
	ofCaller := c.byCaller[k.caller]
	ofCaller[0] = nil
	if c.byCaller[k.caller] = ofCaller[1:]; len(ofCaller) == 1 {
		delete(c.byCaller, k.caller)
	}
}
