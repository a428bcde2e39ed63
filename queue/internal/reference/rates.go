package reference

import (
	"maps"
	"math"
	"time"

	"github.com/stintgo/stint/queue"
)

// Rates is what queues and keys have spent of their rates: for each a theoretical arrival
// time of the generic cell rate algorithm (ITU-T I.371).
type Rates struct {
	settings *Settings
	queues   map[string]arrival
	keys     map[string]map[string]arrival // by queue and key
}

// arrival is a theoretical arrival time, and the part of a nanosecond by which it is later.
type arrival struct {
	at   time.Time
	part float64
}

func newRates(s *Settings) *Rates {
	return &Rates{s, make(map[string]arrival), make(map[string]map[string]arrival)}
}

func (r *Rates) clone(s *Settings) *Rates {
	own := &Rates{s, maps.Clone(r.queues), make(map[string]map[string]arrival)}
	for name, keys := range r.keys {
		own.keys[name] = maps.Clone(keys)
	}
	return own
}

// Spend counts a start of a task.
func (r *Rates) Spend(now time.Time, t *Task) {
	r.queues[t.Queue] = r.queues[t.Queue].spend(r.settings.InForce(t.Queue).Rate, now)
	if t.Key == "" {
		return
	}
	if r.keys[t.Queue] == nil {
		r.keys[t.Queue] = make(map[string]arrival)
	}
	r.keys[t.Queue][t.Key] = r.keys[t.Queue][t.Key].spend(r.settings.keyRate(t.Queue, t.Key), now)
}

// spentAt returns a copy without the queues and keys that have regained their whole burst.
func (r *Rates) spentAt(now time.Time) *Rates {
	own := r.clone(r.settings)
	regained := func(_ string, a arrival) bool { return a.at.Before(now) }
	maps.DeleteFunc(own.queues, regained)
	for _, keys := range own.keys {
		maps.DeleteFunc(keys, regained)
	}
	return own
}

// restore sets what is spent at a time to what another store has spent, but no more than a burst.
func (r *Rates) restore(now time.Time, spent *Rates) {
	own := spent.clone(r.settings)
	r.queues, r.keys = own.queues, own.keys
	for name, a := range r.queues {
		r.queues[name] = a.atMost(r.settings.InForce(name).Rate, now)
	}
	for name, keys := range r.keys {
		for key, a := range keys {
			keys[key] = a.atMost(r.settings.keyRate(name, key), now)
		}
	}
}

// ofQueue returns when the rate of a queue allows a start.
func (r *Rates) ofQueue(name string) time.Time {
	return r.queues[name].mayStartAt(r.settings.InForce(name).Rate)
}

// ofKey returns when the rate of a key allows a start.
func (r *Rates) ofKey(name, key string) time.Time {
	return r.keys[name][key].mayStartAt(r.settings.keyRate(name, key))
}

// configure makes a change of the settings, and reports whether it is one. A rate that has
// changed begins anew: what was spent at the old rate says nothing about the new one.
func (r *Rates) configure(now time.Time, name string, c queue.Change) (changed bool, err error) {
	before := r.settings.clone()
	if changed, err = r.settings.configure(now, name, c); !changed {
		return false, err
	}
	for of := range r.queues {
		if before.InForce(of).Rate != r.settings.InForce(of).Rate {
			delete(r.queues, of)
		}
	}
	for of, keys := range r.keys {
		if before.InForce(of).KeyRate != r.settings.InForce(of).KeyRate {
			clear(keys)
		}
		if c.Key != "" && before.keyRate(of, c.Key) != r.settings.keyRate(of, c.Key) {
			delete(keys, c.Key)
		}
	}
	return true, nil
}

// mayStartAt returns the first time at which a rate allows a start; zero if there is no
// limit.
func (a arrival) mayStartAt(r queue.Rate) time.Time {
	if r.PerSecond <= 0 {
		return time.Time{}
	}
	const rounding = 1e-3 // nanoseconds, by which sums of intervals may be too late
	early := float64(max(r.Burst, 1)-1)*interval(r) + rounding
	return a.at.Add(time.Duration(math.Ceil(a.part - early)))
}

// spend counts a start.
func (a arrival) spend(r queue.Rate, now time.Time) arrival {
	if r.PerSecond <= 0 {
		return a
	}
	if now.After(a.at) {
		a = arrival{at: now}
	}
	whole, part := math.Modf(a.part + interval(r))
	return arrival{a.at.Add(time.Duration(whole)), part}
}

// atMost returns the arrival time, or that after a whole burst at a time if that is earlier.
func (a arrival) atMost(r queue.Rate, now time.Time) arrival {
	if r.PerSecond <= 0 {
		return a
	}
	whole, part := math.Modf(float64(max(r.Burst, 1)) * interval(r))
	most := arrival{now.Add(time.Duration(whole)), part}
	if a.at.After(most.at) || a.at.Equal(most.at) && a.part > most.part {
		return most
	}
	return a
}

// interval returns the nanoseconds between two starts.
func interval(r queue.Rate) float64 { return float64(time.Second) / r.PerSecond }
