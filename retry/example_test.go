package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/retry"
)

func ExampleDo() {
	ctx := context.Background()
	policy := retry.Policy{Base: time.Millisecond}
	err := retry.Do(ctx, policy, func(ctx context.Context) error {
		if retry.Attempt(ctx) < 3 {
			return errors.New("connection refused")
		}
		return nil
	}, retry.OnFailure(func(f retry.Failure) {
		fmt.Printf("attempt %d: %v; again in %v\n", f.Attempt, f.Err, f.Delay)
	}))
	fmt.Println(err)
	// Output:
	// attempt 1: connection refused; again in 1ms
	// attempt 2: connection refused; again in 2ms
	// <nil>
}

func ExamplePermanent() {
	err := retry.Do(context.Background(), retry.Policy{}, func(context.Context) error {
		return retry.Permanent(errors.New("no such file"))
	})
	fmt.Println(err)
	// Output: no such file
}

func ExampleAfter() {
	err := retry.Do(context.Background(), retry.Policy{}, func(ctx context.Context) error {
		if retry.Attempt(ctx) == 1 {
			return retry.After(time.Millisecond, errors.New("429 Too Many Requests"))
		}
		return nil
	}, retry.OnFailure(func(f retry.Failure) {
		fmt.Printf("%v; again in %v\n", f.Err, f.Delay)
	}))
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
	// invalid retry policy "0": "0" is no number of attempts; leave it out for the default
}
