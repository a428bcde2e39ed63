package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint"
)

// Settings are the limits of a queue and how long it keeps finished tasks. A field
// that is zero is not set. Under the name of a queue they are for that queue; under
// the name "" they are the defaults of each queue, except for Total and
// TotalPerKey, which are limits over all queues together and are set only there.
//
// A queue without a Max of its own that is given a default Max of 3 runs 3 tasks,
// and so does each other queue: two of them run 6. A Total of 3 is what keeps all
// queues together at 3.
type Settings struct {
	Max      int        `json:"max,omitempty"`      // tasks of the queue that run at once, over all workers
	Caps     stint.Caps `json:"caps,omitzero"`      // per tier; see [stint.Caps]
	PerKey   int        `json:"per_key,omitempty"`  // tasks of one key of the queue that run at once
	Rate     Rate       `json:"rate,omitzero"`      // starts of tasks of the queue
	KeyRate  Rate       `json:"key_rate,omitzero"`  // starts of tasks of one key of the queue
	Pending  int        `json:"pending,omitempty"`  // unfinished tasks; more are refused with ErrFull
	Paused   *Pause     `json:"paused,omitempty"`   // why nothing starts; set by PauseQueue of [Store], not by a [Change]
	Keep     Retention  `json:"keep,omitzero"`      // of succeeded and cancelled tasks
	KeepDead Retention  `json:"keep_dead,omitzero"` // of dead letters

	Total       int `json:"total,omitempty"`         // tasks of all queues together that run at once
	TotalPerKey int `json:"total_per_key,omitempty"` // tasks of one key, of all queues together, that run at once
}

// Rate limits starts to PerSecond, with up to Burst at once after idle time. The
// zero Rate is not set. A claim counts as a start: a task that is claimed and
// released before it starts, because no slot came free in time, has used up its part.
type Rate struct {
	PerSecond float64 `json:"per_second"`
	Burst     int     `json:"burst,omitempty"` // 1 if it is 0
}

// Pause says by whom, why and since when a queue is paused. By has at most [MaxName] bytes
// and Reason [MaxReason]. If Since is zero in a call of PauseQueue, the pause begins with the call.
type Pause struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

// Retention is how long finished tasks are kept. Zero values are the defaults:
// a day, and 100,000 tasks; for dead letters 30 days, and 100,000. Tasks whose age passes
// while the store is closed are kept for another hour from the first call on: if a clock
// that is ahead only makes it look so, it can be set right meanwhile.
//
// A finished task is kept longer, and not counted, while an unfinished task comes after
// it: see After and AfterAny of [Options]. One that did not succeed is not, if a task waits
// for its success: that would wait for ever.
type Retention struct {
	Age   time.Duration `json:"age_ns,omitempty"`
	Count int           `json:"count,omitempty"` // of a queue
}

// Field names a field of [Settings] by its name in JSON.
type Field string

// The fields that a [Change] sets.
const (
	FieldMax         Field = "max"
	FieldCaps        Field = "caps"
	FieldPerKey      Field = "per_key"
	FieldRate        Field = "rate"
	FieldKeyRate     Field = "key_rate"
	FieldPending     Field = "pending"
	FieldKeep        Field = "keep"
	FieldKeepDead    Field = "keep_dead"
	FieldTotal       Field = "total"
	FieldTotalPerKey Field = "total_per_key"
)

// Fields returns all of them, in the order of [Settings].
func Fields() []Field {
	return []Field{
		FieldMax, FieldCaps, FieldPerKey, FieldRate, FieldKeyRate, FieldPending, FieldKeep, FieldKeepDead,
		FieldTotal, FieldTotalPerKey,
	}
}

// Copy sets field f of s to its value in from. Fields that do not exist change
// nothing.
func (s *Settings) Copy(f Field, from *Settings) {
	switch f {
	case FieldMax:
		s.Max = from.Max
	case FieldCaps:
		s.Caps = from.Caps
	case FieldPerKey:
		s.PerKey = from.PerKey
	case FieldRate:
		s.Rate = from.Rate
	case FieldKeyRate:
		s.KeyRate = from.KeyRate
	case FieldPending:
		s.Pending = from.Pending
	case FieldKeep:
		s.Keep = from.Keep
	case FieldKeepDead:
		s.KeepDead = from.KeepDead
	case FieldTotal:
		s.Total = from.Total
	case FieldTotalPerKey:
		s.TotalPerKey = from.TotalPerKey
	}
}

// Fields returns the fields of s that are not zero, in the order of [Settings].
// Paused is not one of them.
func (s *Settings) Fields() (set []Field) {
	for _, f := range Fields() {
		var one Settings
		if one.Copy(f, s); one != (Settings{}) {
			set = append(set, f)
		}
	}
	return set
}

// Change changes some fields of what is set for a queue, and leaves all others as
// they are. The zero value changes nothing.
//
// Each field can be set twice: by the programs that use the queue, and by an
// operator. Where both have set it, the operator's value is in force until the
// operator unsets the field, however often a program starts and sets its own. A
// field that neither has set for the queue has the default of all queues, for which
// the same is true, and else is not limited.
type Change struct {
	// Key names one key, whose limits are changed instead of those of the queue: Max
	// is then how many of its tasks run at once, instead of PerKey, Rate limits its
	// starts, instead of KeyRate, and Total, under the queue "", is how many of its
	// tasks of all queues together run at once, instead of TotalPerKey. A key has no
	// other fields.
	Key string `json:"key,omitempty"`
	// Operator says that an operator makes the change, and not a program.
	Operator bool `json:"operator,omitempty"`
	// By names the author of the change, for people, in at most [MaxName] bytes.
	By string `json:"by,omitempty"`
	// Set has the new values: its fields that are not zero are set.
	Set Settings `json:"set,omitzero"`
	// Unlimited are fields that are set to no limit, which is not the same as not
	// set: an operator lifts a program's limit by that. Keep and KeepDead cannot be
	// unlimited.
	Unlimited []Field `json:"unlimited,omitempty"`
	// Unset are fields that are set no longer. Those that are not set stay so.
	Unset []Field `json:"unset,omitempty"`
	// Version is the one that the caller has read. If it is another by now nothing is
	// changed, and the error is ErrChanged, unless all is as the change would make it.
	// 0 changes any version.
	Version uint64 `json:"version,omitempty"`
}

// Origin says by whom and when a field was set.
type Origin struct {
	Operator bool      `json:"operator,omitempty"` // by an operator, and not by a program
	By       string    `json:"by,omitempty"`       // empty if it is not known
	At       time.Time `json:"at,omitzero"`        // zero if it is not known
	Default  bool      `json:"default,omitempty"`  // under the name "", for each queue
}

// Layer is what programs, or operators, have set: the fields that From has. One that
// From has and that is zero in Settings is set to no limit.
type Layer struct {
	Settings
	From map[Field]Origin `json:"from,omitempty"`
}

// Layers are what has been set for a queue or a key, by programs and by operators.
type Layers struct {
	Program  Layer `json:"program,omitzero"`
	Operator Layer `json:"operator,omitzero"`
}

// Configured is what has been set under a name, and what is in force there. As for
// [Change], the limits of a key are Max, Rate and Total of its layers.
type Configured struct {
	Layers
	Keys    map[string]Layers `json:"keys,omitempty"`   // that have limits of their own
	Paused  *Pause            `json:"paused,omitempty"` // under this name; see PauseQueue of [Store]
	Version uint64            `json:"version"`          // grows with each change, and never comes again
	// InForce is what holds for the queue by these and by the defaults, and From says
	// what set it, a program or an operator. Under the name "" it holds for each queue that has nothing else.
	InForce Layer `json:"in_force,omitzero"`
}

// Value returns the value of a field that counts of those that the layers have: the
// operator's, else the program's.
func (l *Layers) Value(f Field) (value Settings, from Origin, set bool) {
	for _, layer := range []*Layer{&l.Operator, &l.Program} {
		if from, set = layer.From[f]; set {
			value.Copy(f, &layer.Settings)
			return value, from, true
		}
	}
	return Settings{}, Origin{}, false
}

// ofKey reports whether a key has the field.
func (f Field) ofKey() bool { return f == FieldMax || f == FieldRate || f == FieldTotal }

// Validate reports everything that is wrong with a change of what is set under a
// name, as ErrInvalid. Every store refuses what it reports.
func (c *Change) Validate(name string) error {
	var errs []error
	invalid := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	errs = append(errs, checkLength("by", c.By, MaxName), checkLength("the key", c.Key, MaxName))
	if c.Set.Paused != nil {
		invalid("Paused is not a field that a change sets: unset it, and call PauseQueue or ResumeQueue")
	}
	set := c.Set.Fields()
	for _, f := range c.Unlimited {
		switch {
		case !slices.Contains(Fields(), f):
			invalid("there is no field %q; the fields are %v", f, Fields())
		case f == FieldKeep || f == FieldKeepDead:
			invalid("%s cannot be unlimited: set a large age and count", f)
		case slices.Contains(set, f):
			invalid("%s is set, and unlimited as well: give one of the two", f)
		}
	}
	for _, f := range c.Unset {
		switch {
		case !slices.Contains(Fields(), f):
			invalid("there is no field %q; the fields are %v", f, Fields())
		case slices.Contains(set, f) || slices.Contains(c.Unlimited, f):
			invalid("%s is set, and unset as well: give one of the two", f)
		}
	}
	for _, f := range slices.Concat(set, c.Unlimited) {
		if c.Key != "" && !f.ofKey() {
			invalid("%s cannot be set for one key; max, rate and total can", f)
		}
		if name != "" && (f == FieldTotal || f == FieldTotalPerKey) {
			invalid(`%s is over all queues: set it under the name "", and not for queue %q`, f, name)
		}
	}
	return errors.Join(append(errs, c.Set.validate())...)
}

// validate reports values that no setting can have.
func (s *Settings) validate() error {
	var errs []error
	for _, n := range []struct {
		what  string
		value float64
	}{
		{"max", float64(s.Max)},
		{"caps", float64(min(s.Caps.Lowest, s.Caps.Lower, s.Caps.Low, s.Caps.Normal, s.Caps.High,
			s.Caps.Higher, s.Caps.Highest))},
		{"per_key", float64(s.PerKey)},
		{"pending", float64(s.Pending)},
		{"total", float64(s.Total)},
		{"total_per_key", float64(s.TotalPerKey)},
		{"rate.per_second", s.Rate.PerSecond},
		{"rate.burst", float64(s.Rate.Burst)},
		{"key_rate.per_second", s.KeyRate.PerSecond},
		{"key_rate.burst", float64(s.KeyRate.Burst)},
		{"keep.age", float64(s.Keep.Age)},
		{"keep.count", float64(s.Keep.Count)},
		{"keep_dead.age", float64(s.KeepDead.Age)},
		{"keep_dead.count", float64(s.KeepDead.Count)},
	} {
		if !(n.value >= 0) || n.value > 1e18 {
			errs = append(errs, fmt.Errorf("%w: %s is %v; it must be 0 or more", ErrInvalid, n.what, n.value))
		}
	}
	for f, r := range map[Field]Rate{FieldRate: s.Rate, FieldKeyRate: s.KeyRate} {
		if r.Burst > 0 && r.PerSecond == 0 {
			errs = append(errs, fmt.Errorf("%w: %s has a burst of %d and no rate: give per_second too", ErrInvalid, f, r.Burst))
		}
	}
	return errors.Join(errs...)
}

// Configure sets the fields of s that are not zero, for a queue, or as the defaults
// of each queue if the name is "". All other fields stay as they are, and so does
// what an operator has set, which is in force before this: see [Change]. Programs
// call it at their start, as often as they like. It blocks until the change is
// durable. Errors: ErrInvalid.
func (q *Queue) Configure(ctx context.Context, name string, s Settings) error {
	return q.Change(ctx, name, Change{Set: s})
}

// Unset takes back what [Queue.Configure] has set of some fields of a queue, of all
// of them with [Fields]. What an operator has set stays. Errors: ErrInvalid.
func (q *Queue) Unset(ctx context.Context, name string, fields ...Field) error {
	return q.Change(ctx, name, Change{Unset: fields})
}

// Change changes some fields of what is set for a queue, or for all if the name is "";
// a change by a program that does not say By has the name of this process's worker.
// It blocks until the change is durable. Errors: ErrInvalid, ErrChanged.
func (q *Queue) Change(ctx context.Context, name string, c Change) error {
	if !c.Operator {
		c.By = cmp.Or(c.By, q.cfg.Worker)
	}
	return q.store.Configure(ctx, q.clock.Now(), name, c)
}

// PauseQueue keeps all tasks of a queue from starting, or those of all queues if the
// name is "", until it is resumed. Running tasks go on. It changes nothing else that
// is set, and replaces an earlier pause; if p.Since is zero, the pause begins now.
func (q *Queue) PauseQueue(ctx context.Context, name string, p Pause) error {
	return q.store.PauseQueue(ctx, q.clock.Now(), name, &p)
}

// ResumeQueue ends the pause of a queue, or the pause of all queues if the name is "":
// a queue that was paused by its own name stays paused then.
func (q *Queue) ResumeQueue(ctx context.Context, name string) error {
	return q.store.PauseQueue(ctx, q.clock.Now(), name, nil)
}

// Settings returns what is set, by queue; what is set for all queues is under "".
func (q *Queue) Settings(ctx context.Context) (map[string]Configured, error) {
	return q.store.Settings(ctx)
}
