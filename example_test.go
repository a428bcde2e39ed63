package stint_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stintgo/stint"
)

// A scheduler is a semaphore that knows priorities. Its zero Config is fine.
func ExampleScheduler() {
	s := stint.New(2, stint.Config{})
	ctx := context.Background()

	first, err := s.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Release()

	second, ok := s.TryAcquire(ctx)
	fmt.Println("a second slot at once:", ok)
	_, ok = s.TryAcquire(ctx)
	fmt.Println("a third:", ok)
	second.Release()
	fmt.Printf("%d of %d slots in use\n", s.Stats().Running, s.Stats().Limit)
	// Output:
	// a second slot at once: true
	// a third: false
	// 1 of 2 slots in use
}

// Run calls a function in the caller's goroutine while it has a slot, and hands
// on what it returns.
func ExampleRun() {
	s := stint.New(4, stint.Config{})
	ctx := context.Background()

	length, err := stint.Run(ctx, s, func(context.Context) (int, error) {
		return len("forty-two"), nil
	})
	fmt.Println(length, err)

	_, err = stint.Run(ctx, s, func(context.Context) (int, error) {
		panic("out of cheese")
	})
	var p *stint.PanicError
	fmt.Println(errors.As(err, &p), p.Value)
	// Output:
	// 9 <nil>
	// true out of cheese
}

// A function that runs on a slot may call others on slots of the same
// scheduler, whatever the limit: its own is suspended while it waits.
func ExampleRun_nested() {
	s := stint.New(1, stint.Config{})

	var factorial func(ctx context.Context, n int) (int, error)
	factorial = func(ctx context.Context, n int) (int, error) {
		if n <= 1 {
			return 1, nil
		}
		rest, err := stint.RunWith(ctx, s, factorial, n-1)
		return n * rest, err
	}
	fmt.Println(stint.RunWith(context.Background(), s, factorial, 5))
	// Output: 120 <nil>
}

// A higher tier goes first. The tier is that of the context unless At says
// otherwise, so that it follows a request wherever it goes.
func ExampleGoWith() {
	ctx := context.Background()
	s := stint.New(2, stint.Config{})
	length := func(_ context.Context, word string) (int, error) { return len(word), nil }
	var futures []*stint.Future[int]
	for _, word := range []string{"one", "three", "five"} {
		futures = append(futures, stint.GoWith(ctx, s, length, word)) // no closure for each word
	}
	for _, f := range futures {
		fmt.Println(f.Wait(ctx))
	}
	// Output:
	// 3 <nil>
	// 5 <nil>
	// 4 <nil>
}

func ExampleScheduler_At() {
	s := stint.New(1, stint.Config{})
	ctx := context.Background()
	permit, _ := s.Acquire(ctx) // so that the others have to wait

	var all sync.WaitGroup
	start := func(ctx context.Context, s stint.Scheduler, name string) {
		all.Add(1)
		stint.Go(ctx, s, func(context.Context) (int, error) {
			defer all.Done()
			fmt.Println(name)
			return 0, nil
		})
	}
	start(ctx, s.At(stint.Lowest), "clean up")
	start(ctx, s, "send mail")
	start(stint.WithPriority(ctx, stint.High), s, "answer a request")

	permit.Release()
	all.Wait()
	// Output:
	// answer a request
	// send mail
	// clean up
}

// Keys keep one tenant from taking all slots, and share what there is fairly.
func ExampleScheduler_Key() {
	s := stint.New(10, stint.Config{PerKey: 2})
	ctx := context.Background()
	tenant := s.Key("tenant-7")

	for range 3 {
		_, ok := tenant.TryAcquire(ctx)
		fmt.Println("this tenant:", ok)
	}
	_, ok := s.Key("tenant-8").TryAcquire(ctx)
	fmt.Println("another tenant:", ok)
	fmt.Println("binding:", tenant.Why()[0].Code)
	// Output:
	// this tenant: true
	// this tenant: true
	// this tenant: false
	// another tenant: true
	// binding: key
}

// Caps keep slots free for higher tiers: with Low: 2, work of tier low starts
// only while fewer than two slots are in use, by any tier.
func ExampleConfig() {
	s := stint.New(4, stint.Config{Caps: stint.Caps{Low: 2, Lowest: 1}})
	for _, tier := range []stint.Priority{stint.Low, stint.Normal} {
		for range 3 {
			_, ok := s.At(tier).TryAcquire(context.Background())
			fmt.Printf("%v: %t\n", tier, ok)
		}
	}
	fmt.Printf("caps in force: %+v\n", s.Stats().Caps)
	// Output:
	// low: true
	// low: true
	// low: false
	// normal: true
	// normal: true
	// normal: false
	// caps in force: {Lowest:1 Lower:1 Low:2 Normal:4 High:4 Higher:4 Highest:4}
}

// Why says what keeps work from starting, the binding reason first.
func ExampleScheduler_Why() {
	s := stint.New(2, stint.Config{})
	for range 2 {
		_, _ = s.Acquire(context.Background())
	}
	for _, r := range s.Why() {
		fmt.Printf("%s: %d of %d\n", r.Code, r.Running, r.Limit)
	}
	s.Pause("deploying version 7")
	fmt.Println(s.Why()[0].Code, "by", s.Why()[0].By)
	// Output:
	// max: 2 of 2
	// paused by deploying version 7
}

// Drain takes nothing new and waits for what has been accepted.
func ExampleScheduler_WaitIdle() {
	ctx := context.Background()
	s := stint.New(2, stint.Config{})
	var pages atomic.Int32
	var visit func(depth int)
	visit = func(depth int) {
		stint.Go(ctx, s, func(context.Context) (int32, error) {
			if depth > 0 { // a page has two links
				visit(depth - 1)
				visit(depth - 1)
			}
			return pages.Add(1), nil
		})
	}
	visit(3)
	fmt.Println(s.WaitIdle(ctx), pages.Load()) // without a list of the futures
	// Output: <nil> 15
}

func ExampleScheduler_Drain() {
	s := stint.New(1, stint.Config{})
	ctx := context.Background()
	last := stint.Go(ctx, s, func(context.Context) (string, error) { return "finished", nil })

	fmt.Println(s.Drain(ctx))
	fmt.Println(last.Wait(ctx))
	_, err := s.Acquire(ctx)
	fmt.Println(err)
	// Output:
	// <nil>
	// finished <nil>
	// stint: scheduler is closed
}
