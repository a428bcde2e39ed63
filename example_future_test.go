package stint_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stintgo/stint"
)

func ExampleGo() {
	ctx := context.Background()
	s := stint.New(2, stint.Config{})
	var futures []*stint.Future[int]
	for i := range 4 {
		futures = append(futures, stint.Go(ctx, s, func(context.Context) (int, error) {
			return i * i, nil // at most two of these at once
		}))
	}
	for _, f := range futures {
		fmt.Println(f.Wait(ctx))
	}
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 4 <nil>
	// 9 <nil>
}

func ExampleFuture_Cancel() {
	ctx := context.Background()
	s := stint.New(1, stint.Config{})
	permit, _ := s.Acquire(ctx) // the only slot is taken …
	f := stint.Go(ctx, s, func(context.Context) (string, error) { return "done", nil })
	f.Cancel(errors.New("no longer needed")) // … so it is still queued
	_, err := f.Wait(ctx)
	fmt.Println(err)
	permit.Release()
	// Output: no longer needed
}

func ExampleFuture_SetPriority() {
	ctx := context.Background()
	s := stint.New(1, stint.Config{})
	permit, _ := s.Acquire(ctx) // the only slot is taken
	var futures []*stint.Future[int]
	for i := range 3 {
		futures = append(futures, stint.Go(ctx, s.At(stint.Low), func(context.Context) (int, error) {
			fmt.Println("thumbnail", i)
			return i, nil
		}))
	}
	fmt.Println(futures[2].SetPriority(stint.High)) // a user is looking at it
	permit.Release()
	for _, f := range futures {
		_, _ = f.Wait(ctx)
	}
	// Output:
	// true
	// thumbnail 2
	// thumbnail 0
	// thumbnail 1
}

func ExampleFuture_Teardown() {
	ctx := context.Background()
	s := stint.New(1, stint.Config{})
	permit, _ := s.Acquire(ctx)
	f := stint.Go(ctx, s, func(context.Context) (string, error) { return "done", nil })
	f.Teardown(func() { fmt.Println("file closed") }) // whether it runs, fails or is cancelled
	permit.Release()
	fmt.Println(f.Wait(ctx))
	// Output:
	// file closed
	// done <nil>
}

func ExampleTryGo() {
	ctx := context.Background()
	s := stint.New(1, stint.Config{})
	refresh := func(context.Context) (string, error) { return "fresh", nil }
	if f, ok := stint.TryGo(ctx, s, refresh); ok { // a slot is free
		fmt.Println(f.Wait(ctx))
	}
	permit, _ := s.Acquire(ctx)
	if _, ok := stint.TryGo(ctx, s, refresh); !ok {
		fmt.Println("busy: served the old copy")
	}
	permit.Release()
	// Output:
	// fresh <nil>
	// busy: served the old copy
}

func ExampleGroup_TryGo() {
	ctx := context.Background()
	s := stint.New(1, stint.Config{})
	g := stint.NewGroup(ctx, s)
	permit, _ := s.Acquire(ctx)
	visit := func(context.Context) error { return nil }
	if !g.TryGo(visit) {
		fmt.Println("no slot: visited by the caller itself", visit(ctx))
	}
	permit.Release()
	fmt.Println(g.Wait())
	// Output:
	// no slot: visited by the caller itself <nil>
	// <nil>
}

func ExampleThen() {
	ctx := context.Background()
	s := stint.New(2, stint.Config{})
	page := stint.Go(ctx, s, func(context.Context) (string, error) { return "<h1>Stint</h1>", nil })
	title := stint.Then(ctx, s, page, func(_ context.Context, html string) (string, error) {
		return strings.NewReplacer("<h1>", "", "</h1>", "").Replace(html), nil
	})
	fmt.Println(title.Wait(ctx))
	// Output: Stint <nil>
}

func ExampleCatch() {
	ctx := context.Background()
	s := stint.New(2, stint.Config{})
	page := stint.Go(ctx, s, func(context.Context) (string, error) { return "", errors.New("no route to host") })
	cached := stint.Catch(ctx, s, page, func(_ context.Context, err error) (string, error) {
		return "an old copy, because of: " + err.Error(), nil
	})
	fmt.Println(cached.Wait(ctx))
	// Output: an old copy, because of: no route to host <nil>
}

func ExamplePromise() {
	ctx := context.Background()
	answer := stint.NewPromise[string]()
	go func() { // no function on a slot: the reader of a connection, say
		answer.Resolve("pong")
	}()
	fmt.Println(answer.Future().Wait(ctx))
	fmt.Println(answer.Fail(errors.New("the connection was closed"))) // too late
	// Output:
	// pong <nil>
	// false
}

func ExampleGroup() {
	ctx := context.Background()
	s := stint.New(2, stint.Config{})
	g := stint.NewGroup(ctx, s)
	g.Go(func(ctx context.Context) error {
		<-ctx.Done() // the other's error ends it
		return ctx.Err()
	})
	g.Go(func(context.Context) error { return errors.New("disk is full") })
	fmt.Println(g.Wait())
	// Output: disk is full
}
