package simulation_test

import (
	"time"

	"github.com/stintgo/stint/queue"
)

// bucketOf names a rate: that of a queue, or of a key of it.
type bucketOf struct{ queue, key string }

// bucket counts the tokens of a rate, as anybody would.
type bucket struct {
	tokens float64
	at     time.Time
}

// spend takes the tokens for a start.
func (j *judge) spend(l *life) {
	s := j.of(l.Queue)
	j.take(l, bucketOf{l.Queue, ""}, s.Rate)
	if l.Key != "" {
		j.take(l, bucketOf{l.Queue, "key " + l.Key}, s.KeyRate)
	}
}

func (j *judge) take(l *life, of bucketOf, r queue.Rate) {
	if r.PerSecond == 0 {
		return
	}
	burst := float64(max(r.Burst, 1))
	b := j.buckets[of]
	if b == nil {
		b = &bucket{burst, j.clock}
		j.buckets[of] = b
	}
	b.tokens = min(burst, b.tokens+j.clock.Sub(b.at).Seconds()*r.PerSecond)
	b.at = j.clock
	const rounding = 1e-6
	if b.tokens < 1-rounding {
		j.broken(l, "it starts with %f tokens of %+v", b.tokens, of)
	}
	b.tokens--
}

// totals counts what runs in all queues, and what of that is of a key.
func (j *judge) totals(key string) (running, ofKey int) {
	for _, o := range j.order {
		if o.forgotten || !o.running() {
			continue
		}
		if running++; o.Key == key {
			ofKey++
		}
	}
	return running, ofKey
}

// configured takes settings into the account. A rate that is another one begins
// with all its tokens.
func (j *judge) configured(name string, s queue.Settings) {
	was := j.settings[name]
	if was.Rate != s.Rate {
		delete(j.buckets, bucketOf{name, ""})
	}
	if was.KeyRate != s.KeyRate {
		for _, key := range keyNames {
			delete(j.buckets, bucketOf{name, "key " + key})
		}
	}
	j.settings[name] = s
}
