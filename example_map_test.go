package stint_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/stintgo/stint"
)

func ExampleMap() {
	ctx := context.Background()
	s := stint.New(3, stint.Config{})
	inputs := slices.Values([]string{"7", "x", "9"})
	double := func(_ context.Context, text string) (int, error) {
		n, err := strconv.Atoi(text)
		return 2 * n, err
	}
	for n, err := range stint.Map(ctx, s, inputs, double) {
		if err != nil {
			fmt.Println("skipped:", err)
			continue
		}
		fmt.Println(n)
	}
	// Output:
	// 14
	// skipped: strconv.Atoi: parsing "x": invalid syntax
	// 18
}

// Inputs may be without end: they are taken as there is room for their calls.
func ExampleMap_endless() {
	ctx := context.Background()
	s := stint.New(3, stint.Config{})
	odd := func(yield func(int) bool) {
		for i := 1; yield(i); i += 2 {
		}
	}
	sum := 0
	for square, err := range stint.Map(ctx, s, odd, func(_ context.Context, n int) (int, error) { return n * n, nil }) {
		if sum += square; err != nil || sum > 1000 {
			break // ends the calls in flight
		}
	}
	fmt.Println(sum)
	// Output: 1330
}

func ExampleMapUnordered() {
	ctx := context.Background()
	s := stint.New(2, stint.Config{})
	fast := make(chan struct{})
	hosts := slices.Values([]string{"slow.example", "fast.example"})
	probe := func(_ context.Context, host string) (string, error) {
		if host == "slow.example" {
			<-fast
		}
		return host, nil
	}
	for host, err := range stint.MapUnordered(ctx, s, hosts, probe) {
		fmt.Println(host, err)
		if host == "fast.example" {
			close(fast)
		}
	}
	// Output:
	// fast.example <nil>
	// slow.example <nil>
}
