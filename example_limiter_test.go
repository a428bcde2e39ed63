package stint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/stintgo/stint"
)

// Three at once, and five a minute after that.
func ExampleLimiter() {
	limiter := stint.NewLimiter(5.0/60, stint.LimiterConfig{Capacity: 3})
	for range 4 {
		fmt.Println(limiter.Try(1)) // only if no caller waits
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := limiter.Wait(ctx, 1) // refused at once: it would take twelve seconds
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	fmt.Println("a wait takes", limiter.Delay(1).Round(time.Second))
	// Output:
	// true
	// true
	// true
	// false
	// true
	// a wait takes 12s
}

// Each tenant has ten requests at once and one a minute after that; all of them together
// have a thousand a second.
func ExampleLimiter_Key() {
	requests := stint.NewLimiter(1000, stint.LimiterConfig{PerKey: 1.0 / 60, KeyCapacity: 10})
	served := 0
	for range 25 {
		if requests.Key("tenant-7").Try(1) {
			served++
		}
	}
	fmt.Println("tenant-7:", served)
	fmt.Println("tenant-8:", requests.Key("tenant-8").Try(10))
	after, _ := requests.Key("tenant-8").TryAfter(5)
	fmt.Println("tenant-8 may come back after", after.Round(time.Minute))
	fmt.Println("keys that are remembered:", requests.Stats().Keys)
	// Output:
	// tenant-7: 10
	// tenant-8: true
	// tenant-8 may come back after 5m0s
	// keys that are remembered: 2
}

// A server that refuses a request says when the next one will be let in.
func ExampleLimiter_TryAfter() {
	limiter := stint.NewLimiter(0.5, stint.LimiterConfig{Capacity: 2}) // one in two seconds
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if after, ok := limiter.TryAfter(1); !ok {
			w.Header().Set("Retry-After", fmt.Sprint(math.Ceil(after.Seconds())))
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	for range 3 {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
		fmt.Println(answer.Code, answer.Header())
	}
	// Output:
	// 200 map[]
	// 200 map[]
	// 429 map[Retry-After:[2]]
}

// Why returns the reasons for which a number of tokens would wait now.
func ExampleLimiter_Why() {
	limiter := stint.NewLimiter(0.001, stint.LimiterConfig{Capacity: 100})
	limiter.Try(80)
	fmt.Println(len(limiter.Why(20)), "reasons for 20 tokens")
	for _, reason := range limiter.Why(50) {
		fmt.Println(reason.Code, "short of", reason.Tokens, "tokens")
	}
	// Output:
	// 0 reasons for 20 tokens
	// rate short of 30 tokens
}

// A background copy that leaves the bandwidth to higher priorities.
func ExampleLimiter_Reader() {
	bandwidth := stint.NewLimiter(10<<20, stint.LimiterConfig{}) // bytes per second

	ctx := stint.WithPriority(context.Background(), stint.Lowest)
	r := bandwidth.Reader(ctx, strings.NewReader("a backup of everything"))
	var backup strings.Builder
	n, err := io.Copy(&backup, r)
	fmt.Println(n, err)
	// Output: 22 <nil>
}
