package csync_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stintgo/stint/csync"
)

// A sync.Mutex is waited for however long that takes. This wait ends with its context.
func ExampleMutex_Lock() {
	var std sync.Mutex
	std.Lock()
	fmt.Println("sync: free now:", std.TryLock()) // std.Lock() would never return

	var mu csync.Mutex
	_ = mu.Lock(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println("csync:", mu.Lock(ctx))
	// Output:
	// sync: free now: false
	// csync: context deadline exceeded
}

// The Acquire of golang.org/x/sync/semaphore waits for the end of the context if the
// weight is above the total, which can never be had. This one says so at once; and With
// releases when its function panics, where a Release would be forgotten.
func ExampleSemaphore_With() {
	memory := csync.NewSemaphore(100)
	ctx := context.Background()
	fmt.Println(errors.Is(memory.Acquire(ctx, 101), csync.ErrTooHeavy))
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		_ = memory.With(ctx, 60, func() error { panic("out of order") })
	}()
	fmt.Println("available:", memory.Available())
	// Output:
	// true
	// recovered: out of order
	// available: 100
}

// A reader of a sync.RWMutex waits for the writer however long that takes. Here it gives
// up with its context, and goes in when the writer has left.
func ExampleRWMutex_RLock() {
	var std sync.RWMutex
	std.Lock()
	fmt.Println("sync: may read now:", std.TryRLock()) // std.RLock() would never return

	var rw csync.RWMutex
	_ = rw.Lock(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println("csync, while written:", rw.RLock(ctx))
	rw.Unlock()
	fmt.Println("csync, afterwards:", rw.RLock(context.Background()))
	// Output:
	// sync: may read now: false
	// csync, while written: context deadline exceeded
	// csync, afterwards: <nil>
}

// A send on a closed channel of the language panics, and so does a second close. So only
// its one sender may close it; a Chan may be closed by any side.
func ExampleChan_Close() {
	std := make(chan int, 1)
	close(std)
	func() {
		defer func() { fmt.Println("channel:", recover()) }()
		std <- 1
	}()

	c := csync.NewChan[int](2)
	ctx := context.Background()
	_ = c.Send(ctx, 1)
	c.Close()
	c.Close()
	fmt.Println("Chan:", c.Send(ctx, 2))
	for v := range c.All(ctx) {
		fmt.Println("still received:", v)
	}
	// Output:
	// channel: send on closed channel
	// Chan: csync: channel is closed
	// still received: 1
}

// Where one of several goroutines cannot go on, a sync.WaitGroup keeps the others waiting.
// A barrier lets all of them know, also those that come later.
func ExampleBarrier_Break() {
	b := csync.NewBarrier(2, nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := b.Wait(context.Background()) // for the other party
		fmt.Println(err)
	})
	b.Break(errors.New("no input"))
	wg.Wait()
	// Output: csync: barrier is broken: no input
}
