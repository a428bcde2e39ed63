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

// Settings are the limits and the retention of a queue. A zero field is not set. The
// settings of the queue "" are the defaults of each queue, except for Total and
// TotalPerKey, which limit all queues together and are set only there.
//
// With a default Max of 3, each queue without a Max of its own runs 3 tasks, so two
// queues run 6. A Total of 3 limits all queues together to 3.
type Settings struct {
	Max      int        `json:"max,omitempty"`      // running tasks of the queue, over all workers
	Caps     stint.Caps `json:"caps,omitzero"`      // running tasks, of any tier, from which a tier starts no more
	PerKey   int        `json:"per_key,omitempty"`  // running tasks of one key of the queue
	Rate     Rate       `json:"rate,omitzero"`      // starts of tasks of the queue
	KeyRate  Rate       `json:"key_rate,omitzero"`  // starts of tasks of one key of the queue
	Pending  int        `json:"pending,omitempty"`  // unfinished tasks; more are refused with ErrFull
	Paused   *Pause     `json:"paused,omitempty"`   // why nothing starts; set by PauseQueue of [Store], not by a [Change]
	Keep     Retention  `json:"keep,omitzero"`      // of succeeded and cancelled tasks
	KeepDead Retention  `json:"keep_dead,omitzero"` // of dead letters

	Total       int `json:"total,omitempty"`         // running tasks of all queues together
	TotalPerKey int `json:"total_per_key,omitempty"` // running tasks of one key, in all queues together
}

// Rate limits starts to PerSecond, with up to Burst at once after an idle time. The zero
// Rate is not set. A claim counts as a start, even if the task is released before its
// handler is called, because no slot was free in time.
type Rate struct {
	PerSecond float64 `json:"per_second"`
	Burst     int     `json:"burst,omitempty"` // 1 if it is 0
}

// Pause has the author, the reason and the beginning of a pause. By has at most [MaxName]
// bytes and Reason [MaxReason]. If Since is zero in a call of PauseQueue, the pause
// begins with the call.
type Pause struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
}

// Retention is how long finished tasks are kept. Zero values are the defaults: a day, and
// 100,000 tasks; for dead letters 30 days, and 100,000. Tasks that reach their age while
// the store is closed are kept for another hour from the first call on, in case only a
// clock that is ahead makes them look old.
//
// A finished task is kept longer, and not counted, while an unfinished task comes after
// it: see After and AfterAny of [Options]. That does not hold for a task without success
// that another one waits for in After, which would wait for ever.
//
// A task that has been forgotten is not known any more: a call of Submit whose answer was lost, and
// that is repeated for as long as the Patience of a client or a node, accepts it anew. With a Count that
// is reached within that time, a Unique name with UniqueFor prevents this.
type Retention struct {
	Age   time.Duration `json:"age_ns,omitempty"` // at most 1e18 ns, which is 31 years
	Count int           `json:"count,omitempty"`  // of a queue
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

// Fields returns all fields, in the order of [Settings].
func Fields() []Field {
	return []Field{
		FieldMax, FieldCaps, FieldPerKey, FieldRate, FieldKeyRate, FieldPending, FieldKeep, FieldKeepDead,
		FieldTotal, FieldTotalPerKey,
	}
}

// Copy sets field f of s to its value in from. An unknown field changes nothing.
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

// Change changes some fields of the settings of a queue, and leaves all others as they
// are. The zero value changes nothing.
//
// Each field can be set twice: by the programs that use the queue, and by an operator. If
// both have set it, the operator's value is in force until the operator unsets the field,
// however often a program starts and sets its own. A field that neither has set has the
// value of the settings for all queues (name ""); without that there is no limit.
type Change struct {
	// Key names one key, whose limits are changed instead of those of the queue. Max is
	// then the limit of its running tasks in place of PerKey, Rate that of its starts in
	// place of KeyRate and, under the queue "", Total that of its running tasks in all
	// queues together in place of TotalPerKey. A key has no other fields.
	Key string `json:"key,omitempty"`
	// Operator says that the author of the change is an operator, not a program.
	Operator bool `json:"operator,omitempty"`
	// By names the author of the change, in at most [MaxName] bytes.
	By string `json:"by,omitempty"`
	// Set has the new values: its fields that are not zero are set.
	Set Settings `json:"set,omitzero"`
	// Unlimited are fields to set to no limit, which differs from not set: an operator
	// lifts a program's limit with it. Keep and KeepDead cannot be unlimited.
	Unlimited []Field `json:"unlimited,omitempty"`
	// Unset are fields to unset. A field that is not set stays so.
	Unset []Field `json:"unset,omitempty"`
	// Version is the version that the caller has read. If it has changed, nothing is
	// changed and the error is ErrChanged, unless the settings are already as the change
	// would make them. 0 changes any version.
	Version uint64 `json:"version,omitempty"`
}

// Origin is the author and the time of the setting of a field.
type Origin struct {
	Operator bool      `json:"operator,omitempty"` // the author is an operator, not a program
	By       string    `json:"by,omitempty"`       // empty if unknown
	At       time.Time `json:"at,omitzero"`        // zero if unknown
	Default  bool      `json:"default,omitempty"`  // under the name "", for each queue
}

// Layer has the settings by programs, or those by operators: the fields in From. A field
// in From that is zero in Settings is set to no limit.
type Layer struct {
	Settings
	From map[Field]Origin `json:"from,omitempty"`
}

// Layers are the settings of a queue or a key by programs and by operators.
type Layers struct {
	Program  Layer `json:"program,omitzero"`
	Operator Layer `json:"operator,omitzero"`
}

// Configured has the settings under a name, and those in force. As in [Change], the
// limits of a key are Max, Rate and Total of its layers.
type Configured struct {
	Layers
	Keys    map[string]Layers `json:"keys,omitempty"`   // keys that have limits of their own
	Paused  *Pause            `json:"paused,omitempty"` // under this name; see PauseQueue of [Store]
	Version uint64            `json:"version"`          // grows with each change, and is never reused
	// InForce has the limits of the queue by these settings and by the defaults; From
	// has the origin of each. Under the name "" it has the limits of a queue without
	// settings of its own.
	InForce Layer `json:"in_force,omitzero"`
}

// Value returns the value of a field that is in force: the operator's, or else the
// program's.
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

// Validate returns all errors of a change of the settings under a name, as ErrInvalid.
// Every store refuses such a change.
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

// validate returns the errors of values that no setting may have.
func (s *Settings) validate() error {
	const most = 1e18 // of any number; of an age in nanoseconds, 31 years
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
		{"keep.count", float64(s.Keep.Count)},
		{"keep_dead.count", float64(s.KeepDead.Count)},
	} {
		if !(n.value >= 0 && n.value <= most) {
			errs = append(errs, fmt.Errorf("%w: %s is %v; it must be from 0 to %v", ErrInvalid, n.what, n.value, most))
		}
	}
	for f, r := range map[Field]Retention{FieldKeep: s.Keep, FieldKeepDead: s.KeepDead} {
		if r.Age < 0 || r.Age > most {
			errs = append(errs, fmt.Errorf("%w: %s.age is %s; it must be from 0 to %s",
				ErrInvalid, f, r.Age, time.Duration(most)))
		}
	}
	for f, r := range map[Field]Rate{FieldRate: s.Rate, FieldKeyRate: s.KeyRate} {
		if r.Burst > 0 && r.PerSecond == 0 {
			errs = append(errs, fmt.Errorf("%w: %s has a burst of %d and no rate: give per_second too", ErrInvalid, f, r.Burst))
		}
	}
	return errors.Join(errs...)
}

// Configure sets the fields of s that are not zero for a queue, or as the defaults of
// each queue if the name is "". All other fields stay as they are, and so do the values
// of operators, which have precedence: see [Change]. Programs call it at each start. It
// blocks until the change is durable. Errors: ErrInvalid.
func (q *Queue) Configure(ctx context.Context, name string, s Settings) error {
	return q.Change(ctx, name, Change{Set: s})
}

// Unset unsets fields of a queue that [Queue.Configure] has set, all of them with
// [Fields]. The values of operators stay. Errors: ErrInvalid.
func (q *Queue) Unset(ctx context.Context, name string, fields ...Field) error {
	return q.Change(ctx, name, Change{Unset: fields})
}

// Change changes fields of the settings of a queue, or of the defaults if the name is "".
// If a change by a program has no By, By is the name of this process's worker. It blocks
// until the change is durable. Errors: ErrInvalid, ErrChanged.
func (q *Queue) Change(ctx context.Context, name string, c Change) error {
	if !c.Operator {
		c.By = cmp.Or(c.By, q.cfg.Worker)
	}
	return q.store.Configure(ctx, q.clock.Now(), name, c)
}

// PauseQueue pauses a queue, or all queues if the name is "", until it is resumed: none
// of its tasks starts. Running tasks continue. It changes no other setting, and replaces
// an earlier pause; if p.Since is zero, the pause begins now.
func (q *Queue) PauseQueue(ctx context.Context, name string, p Pause) error {
	return q.store.PauseQueue(ctx, q.clock.Now(), name, &p)
}

// ResumeQueue ends the pause of a queue, or the pause of all queues if the name is "". A
// queue that was paused by its own name stays paused in the second case.
func (q *Queue) ResumeQueue(ctx context.Context, name string) error {
	return q.store.PauseQueue(ctx, q.clock.Now(), name, nil)
}

// Settings returns the settings by queue, and those of all queues under ""; with a [PartialError],
// those of the groups that answer.
func (q *Queue) Settings(ctx context.Context) (map[string]Configured, error) {
	return q.store.Settings(ctx)
}
