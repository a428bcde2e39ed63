package stint

import (
	"errors"
	"fmt"
	"math"

	"github.com/stintgo/stint/internal/sched"
)

// MaxSlots is the largest limit that [New] and [Scheduler.Resize] take, the largest
// weight, and the largest number in a [Config].
const MaxSlots = math.MaxInt32

// Config configures a [Scheduler] beyond its limit. The zero value is a good default: no
// caps, no limit per key, an unbounded queue.
type Config struct {
	// Caps hold lower tiers back while much is running.
	Caps Caps
	// PerKey is the maximum number of entries of one key that run at once; 0 means no limit.
	PerKey int
	// Share weighs a key against the other keys of its tier while both wait:
	// a key with share 3 starts three times as often as one with share 1. It is
	// called with the scheduler's lock held, once for each key that begins to
	// wait, and must not block or use the scheduler. If it panics, the program ends,
	// even if a caller recovers the panic, since the scheduler would stay locked.
	// Nil, or less than 1, is a share of 1; the largest share is 1<<20.
	Share func(key string) int
	// Queue is the maximum number of entries that may wait, over all tiers and keys; 0 means no bound.
	// WhenFull decides what happens to an arrival beyond it.
	Queue int
	// WhenFull is what happens to an arrival that finds Queue entries waiting.
	WhenFull WhenFull
	// Slots is where the slots come from when they are shared with other
	// processes or hosts. Nil keeps them in the scheduler. The scheduler's own
	// limits apply on top.
	Slots Slots
	// Holders makes the scheduler record which work has slots, and since when: [Reason.Held]
	// names it, and an [Estimate] also takes into account when callers of Acquire and [Run]
	// got their slots. Each of those calls then takes a lock and reads the clock, some
	// 0.3 µs, and small functions of a [Group] take some 0.6 µs longer.
	Holders bool
	// OnPanic is called when a function passed to [Go] or its variants, [Then], [Catch],
	// a [Group] or [Map] has panicked, or a teardown of a [Future] or the inputs of a Map
	// have. It is meant for a log line: the panic is also the error of the outcome, but the
	// program may never read the outcome. It is called once for each panic, in the goroutine
	// that panicked, and before the outcome is published; a function still has its slot. It
	// may be called by many goroutines at once. If it panics itself, the program ends as by
	// any panic. [Run] does not call it: its caller gets the error. Nil is not called.
	OnPanic func(*PanicError)
}

// WhenFull is what a bounded queue does with an arrival that finds it full.
type WhenFull uint8

const (
	// Block makes [Go], [GoWith], [Group.Go] and [Map] wait until there is room, in the
	// order in which the queue itself would serve them. The next one in that order needs
	// no room if its work can start at once. Callers of Acquire and [Run] block anyway, so
	// they are queued even if the queue is full.
	Block WhenFull = iota
	// Refuse makes all of these calls fail with [ErrQueueFull].
	Refuse
)

// Caps is, by tier, the number of slots in use from which the tier starts no more work:
// with Low: 20, an entry of tier low starts only while fewer than 20 slots are in use, by
// any tier. 0 is unset: an unset tier has the cap of the next lower tier that has one;
// tiers above the topmost set one have the limit as their cap, and unset tiers below the
// bottommost set one have its cap. No cap exceeds the limit.
//
// The cap of a tier must not be less than that of a lower tier, where both are set: with
// Low: 8, High: 3, work of tier low could start while work of tier high may not.
// [Config.Validate] reports such caps.
type Caps struct {
	Lowest  int `json:"lowest,omitempty"`
	Lower   int `json:"lower,omitempty"`
	Low     int `json:"low,omitempty"`
	Normal  int `json:"normal,omitempty"`
	High    int `json:"high,omitempty"`
	Higher  int `json:"higher,omitempty"`
	Highest int `json:"highest,omitempty"`
}

func (c Caps) tiers() [Tiers]int {
	return [Tiers]int{c.Lowest, c.Lower, c.Low, c.Normal, c.High, c.Higher, c.Highest}
}

// engine is the configuration of the engine.
func (c Config) engine(limit int) sched.Config {
	cfg := sched.Config{
		Limit: limit, Caps: c.Caps.tiers(), PerKey: c.PerKey,
		Queue: c.Queue, Refuse: c.WhenFull == Refuse, Holders: c.Holders, Caught: caught, Report: c.report,
	}
	if c.Share != nil {
		cfg.Share = func(key string) (share int) {
			mustReturn("Config.Share", func() { share = c.Share(key) })
			return share
		}
	}
	if c.Slots != nil {
		cfg.Slots = engineSlots(c.Slots)
	}
	return cfg
}

// report calls OnPanic for a panic. The hook may panic or end the goroutine, so the caller
// must defer what has to follow.
func (c Config) report(err error) {
	if p, ok := err.(*PanicError); ok && c.OnPanic != nil { //nolint:errorlint // as [caught] returns it
		c.OnPanic(p)
	}
}

func capsOf(tiers [Tiers]int) Caps {
	return Caps{tiers[0], tiers[1], tiers[2], tiers[3], tiers[4], tiers[5], tiers[6]}
}

// Validate reports every problem of a limit and its configuration at once. [New] panics
// with the error that it returns, so a program that takes them from a user should call it
// first.
func (c Config) Validate(limit int) error {
	return errors.Join(
		inRange("limit", limit), c.Caps.validate(), inRange("PerKey", c.PerKey), inRange("Queue", c.Queue),
		c.WhenFull.validate())
}

func (c Caps) validate() error {
	var problems []error
	tiers := c.tiers()
	largest := 0 // the tier with the largest cap so far, the highest of them
	for i, limit := range tiers {
		problems = append(problems, inRange("Caps."+capNames[i], limit))
		switch {
		case limit >= tiers[largest]:
			largest = i
		case limit > 0:
			problems = append(problems, fmt.Errorf("stint: Caps.%[1]s is %[2]d, less than Caps.%[3]s, which "+
				"is %[4]d and of a lower tier: write %[4]d or more for %[1]s, %[2]d or less for %[3]s, or leave %[1]s out",
				capNames[i], limit, capNames[largest], tiers[largest]))
		}
	}
	return errors.Join(problems...)
}

// capNames are the fields of [Caps], lowest tier first.
var capNames = [Tiers]string{"Lowest", "Lower", "Low", "Normal", "High", "Higher", "Highest"}

func (w WhenFull) validate() error {
	if w > Refuse {
		return fmt.Errorf("stint: WhenFull is %d, must be Block or Refuse", w)
	}
	return nil
}

func inRange(what string, n int) error {
	if n < 0 || n > MaxSlots {
		return fmt.Errorf("stint: %s is %d, must be from 0 to %d", what, n, MaxSlots)
	}
	return nil
}
