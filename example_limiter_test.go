package stint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stintgo/stint"
)

// Three at once, and five a minute after that.
func ExampleLimiter() {
	limiter := stint.NewLimiter(5.0/60, stint.LimiterConfig{Capacity: 3})
	for range 4 {
		fmt.Println(limiter.Try(1)) // only if nobody has to wait for it
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := limiter.Wait(ctx, 1) // refused at once: it would take twelve seconds
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	fmt.Println("come back in", limiter.Delay(1).Round(time.Second))
	// Output:
	// true
	// true
	// true
	// false
	// true
	// come back in 12s
}

// A background copy that leaves the bandwidth to whoever needs it more.
func ExampleLimiter_Reader() {
	bandwidth := stint.NewLimiter(10<<20, stint.LimiterConfig{}) // bytes per second

	ctx := stint.WithPriority(context.Background(), stint.Lowest)
	r := bandwidth.Reader(ctx, strings.NewReader("a backup of everything"))
	var backup strings.Builder
	n, err := io.Copy(&backup, r)
	fmt.Println(n, err)
	// Output: 22 <nil>
}
