package stint_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/buckettest"
	"github.com/stintgo/stint/internal/seeded"
)

// TestB13_ModelRandom has random callers of several limiters, with and without
// rates of their own, wait, try and give up, while the bucket cannot be had now and
// then, and checks that the tokens that they have had are those that were taken from
// it and not returned, and no more than it had.
func TestB13_ModelRandom(t *testing.T) {
	rng := seeded.Rand(t)
	for range 30 {
		seeds := rng.Perm(1 << 10)
		synctest.Test(t, func(t *testing.T) {
			r := &randomSharing{t: t, pool: buckettest.NewPool(1000, 50), start: time.Now()}
			var wg sync.WaitGroup
			for i := range 4 {
				l := stint.NewLimiter(float64(i%2*400), stint.LimiterConfig{Bucket: r.pool.Join(strconv.Itoa(i))})
				for w := range 5 {
					wg.Go(func() { r.work(l, seeds[i*5+w]) })
				}
			}
			for range 20 {
				time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
				r.pool.Break(errAway)
				time.Sleep(time.Millisecond)
				r.pool.Break(nil)
			}
			wg.Wait()
			r.check()
		})
	}
}

var errAway = errors.New("the bucket is away")

type randomSharing struct {
	t     *testing.T
	pool  *buckettest.Pool
	start time.Time
	got   atomic.Int64
}

func (r *randomSharing) work(l stint.Limiter, seed int) {
	for i := range 60 {
		seed = (seed*1103515245 + 12345) & 0x7fffffff
		n := int64(seed >> 8 % 80)
		at := l.At(stint.Lowest + stint.Priority(seed>>16%stint.Tiers))
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Duration(seed>>12%4000)*time.Millisecond)
		switch {
		case i%5 == 0:
			if at.Try(n) {
				r.got.Add(n)
			}
		case at.Wait(ctx, n) == nil:
			r.got.Add(n)
		}
		cancel()
	}
}

func (r *randomSharing) check() {
	r.t.Helper()
	if had, out := r.got.Load(), r.pool.Out(); had != out {
		r.t.Errorf("%d tokens had, %d were taken and not returned", had, out)
	}
	u := r.pool.Join("auditor").Usage()
	if u.Waiting != 0 {
		r.t.Errorf("%+v without waiters", u)
	}
	earned := int64(time.Since(r.start).Seconds()*1000) + 50
	if r.got.Load()+u.Tokens > earned+1 {
		r.t.Errorf("%d tokens had and %d left, %d were earned", r.got.Load(), u.Tokens, earned)
	}
}
