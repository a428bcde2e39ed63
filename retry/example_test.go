package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/retry"
)

func ExampleDo() {
	policy := retry.Policy{Base: time.Millisecond}
	err := retry.Do(context.Background(), policy, func(ctx context.Context) error {
		n := retry.Attempt(ctx)
		fmt.Println("attempt", n)
		if n < 3 {
			return errors.New("connection refused")
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// <nil>
}

func ExampleConfig_Do() {
	errNotFound := errors.New("not found")
	cfg := retry.Config{
		Policy: retry.Policy{Attempts: 5, Base: time.Millisecond},
		If:     func(err error) bool { return !errors.Is(err, errNotFound) },
		OnFailure: func(f retry.Failure) {
			fmt.Printf("attempt %d: %v; again in %v, final: %t\n", f.Attempt, f.Err, f.Delay, f.Final)
		},
	}
	err := cfg.Do(context.Background(), func(ctx context.Context) error {
		if retry.Attempt(ctx) < 3 {
			return errors.New("connection refused")
		}
		return errNotFound
	})
	fmt.Println(err)
	// Output:
	// attempt 1: connection refused; again in 1ms, final: false
	// attempt 2: connection refused; again in 2ms, final: false
	// attempt 3: not found; again in 0s, final: true
	// not found
}

func ExamplePermanent() {
	err := retry.Do(context.Background(), retry.Policy{}, func(context.Context) error {
		return retry.Permanent(errors.New("no such file"))
	})
	fmt.Println(err)
	// Output: no such file
}

func ExampleAfter() {
	cfg := retry.Config{OnFailure: func(f retry.Failure) {
		fmt.Printf("%v; again in %v\n", f.Err, f.Delay)
	}}
	err := cfg.Do(context.Background(), func(ctx context.Context) error {
		if retry.Attempt(ctx) == 1 {
			return retry.After(time.Millisecond, errors.New("429 Too Many Requests"))
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 429 Too Many Requests; again in 1ms
	// <nil>
}

func ExamplePolicy_Next() {
	policy := retry.Policy{Attempts: 6, Base: time.Second, Max: 5 * time.Second}
	delay, ok := policy.Next(1, 0, nil)
	for attempt := 1; ok; {
		fmt.Println("after attempt", attempt, "wait", delay)
		attempt++
		delay, ok = policy.Next(attempt, delay, nil)
	}
	// Output:
	// after attempt 1 wait 1s
	// after attempt 2 wait 2s
	// after attempt 3 wait 4s
	// after attempt 4 wait 5s
	// after attempt 5 wait 5s
}

func ExampleParse() {
	policy, err := retry.Parse("5,1s,full")
	fmt.Println(policy, err)
	_, err = retry.Parse("0")
	fmt.Println(err)
	// Output:
	// 5,1s,2x,30s,full <nil>
	// retry: invalid policy "0": "0" is not a valid number of attempts; leave it out for the default
}
