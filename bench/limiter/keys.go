package limiter

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/stintgo/stint"
	"golang.org/x/time/rate"

	"github.com/stintgo/stint/bench/measure"
)

// The rate in tokens per second, and the burst, of each key. No key reaches them.
const (
	keyRate  = 1_000_000
	keyBurst = 1_000_000
)

const lockedMap = "map of " + xtime + ", mutex"

// keyed is a limit for each tenant: a try of one key after the other. What users of x/time/rate
// write is a map of limiters; it keeps every key forever, which costs nothing in this case.
func keyed(keys int) measure.Case {
	return measure.Case{
		Name:  fmt.Sprintf("try of %d keys in turn", keys),
		Ours:  ours,
		Goals: []string{"time ≤ 1× " + lockedMap},
		Subjects: []measure.Subject{
			{Name: ours, Loop: turns(keys, keyedStint)},
			{Name: lockedMap, Loop: turns(keys, keyedMap)},
			{Name: "sync.Map of " + xtime, Loop: turns(keys, keyedSyncMap)},
		},
	}
}

// turns tries one key after the other.
func turns(keys int, prepare func() func(key string) bool) func(*measure.Stage) measure.Loop {
	return func(*measure.Stage) measure.Loop {
		names := make([]string, keys)
		for i := range names {
			names[i] = "tenant-" + strconv.Itoa(i)
		}
		try, next := prepare(), 0
		return func(n int) int {
			done := 0
			for range n {
				if try(names[next]) {
					done++
				}
				if next++; next == keys {
					next = 0
				}
			}
			return done
		}
	}
}

func keyedStint() func(string) bool {
	l := stint.NewLimiter(0, stint.LimiterConfig{PerKey: keyRate, KeyCapacity: keyBurst})
	return func(key string) bool { return l.Key(key).Try(1) }
}

func keyedMap() func(string) bool {
	var mu sync.Mutex
	limiters := make(map[string]*rate.Limiter)
	return func(key string) bool {
		mu.Lock()
		l := limiters[key]
		if l == nil {
			l = rate.NewLimiter(keyRate, keyBurst)
			limiters[key] = l
		}
		mu.Unlock()
		return l.Allow()
	}
}

func keyedSyncMap() func(string) bool {
	var limiters sync.Map
	return func(key string) bool {
		l, ok := limiters.Load(key)
		if !ok {
			l, _ = limiters.LoadOrStore(key, rate.NewLimiter(keyRate, keyBurst))
		}
		return l.(*rate.Limiter).Allow()
	}
}
