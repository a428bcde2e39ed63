package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// LimitScope says what a limit applies to.
type LimitScope string

// The scopes.
const (
	OfQueue LimitScope = "queue" // one queue
	OfEach  LimitScope = "each"  // each queue without a limit of its own
	OfAll   LimitScope = "all"   // all queues together
)

// Limit is a limit in force.
type Limit struct {
	Scope LimitScope  `json:"scope"`
	Queue string      `json:"queue,omitempty"` // of OfQueue
	Key   string      `json:"key,omitempty"`   // the key, if the limit applies to one key
	Name  string      `json:"limit"`           // as the flag of stint limit set
	Field queue.Field `json:"field"`           // of [queue.Settings]
	Value any         `json:"value"`           // a number, a rate, caps or a retention; nil means no limit
	InUse *int        `json:"in_use,omitempty"`
	queue.Origin
	Program any `json:"program,omitempty"` // the value of a program, if an operator's value overrides it
}

// limitNames returns the names of the flags that set limits.
func limitNames() map[queue.Field]string {
	return map[queue.Field]string{
		queue.FieldMax: "running", queue.FieldTotal: "running", queue.FieldCaps: "cap", queue.FieldPerKey: "per-key",
		queue.FieldTotalPerKey: "per-key", queue.FieldRate: "rate", queue.FieldKeyRate: "key-rate",
		queue.FieldPending: "pending", queue.FieldKeep: "keep", queue.FieldKeepDead: "keep-dead",
	}
}

// Limits returns all limits that are set: those over all queues first, then the defaults
// for each queue, then those of each queue and its keys.
func Limits(all map[string]queue.Configured, stats *queue.Stats) (limits []Limit) {
	for _, name := range slices.Sorted(maps.Keys(all)) { // "" is the first
		is := all[name]
		limits = append(limits, limitsOf(name, "", &is.Layers, stats)...)
		for _, key := range slices.Sorted(maps.Keys(is.Keys)) {
			layers := is.Keys[key]
			limits = append(limits, limitsOf(name, key, &layers, stats)...)
		}
	}
	slices.SortStableFunc(limits, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Queue, b.Queue))
	})
	return limits
}

func (l *Limit) rank() int { return slices.Index([]LimitScope{OfAll, OfEach, OfQueue}, l.Scope) }

// limitsOf returns the limits of a queue, or of one key of it.
func limitsOf(name, key string, layers *queue.Layers, stats *queue.Stats) (limits []Limit) {
	for _, f := range queue.Fields() {
		value, from, set := layers.Value(f)
		if !set {
			continue
		}
		l := Limit{Scope: OfQueue, Queue: name, Key: key, Name: limitNames()[f], Field: f, Origin: from}
		switch total := f == queue.FieldTotal || f == queue.FieldTotalPerKey; {
		case total:
			l.Scope = OfAll
		case name == "":
			l.Scope = OfEach
		}
		l.Value = fieldValue(f, &value)
		l.InUse = l.inUse(stats)
		if _, too := layers.Program.From[f]; too && from.Operator {
			if l.Program = fieldValue(f, &layers.Program.Settings); l.Program == nil {
				l.Program = unlimited
			}
		}
		limits = append(limits, l)
	}
	return limits
}

// unlimited is the word for no limit.
const unlimited = "none"

// fieldValue returns the value of a field, or nil for no limit.
func fieldValue(f queue.Field, s *queue.Settings) any {
	var value any
	switch f {
	case queue.FieldMax:
		value = s.Max
	case queue.FieldPerKey:
		value = s.PerKey
	case queue.FieldPending:
		value = s.Pending
	case queue.FieldTotal:
		value = s.Total
	case queue.FieldTotalPerKey:
		value = s.TotalPerKey
	case queue.FieldCaps:
		value = s.Caps
	case queue.FieldRate:
		value = s.Rate
	case queue.FieldKeyRate:
		value = s.KeyRate
	case queue.FieldKeep:
		value = s.Keep
	case queue.FieldKeepDead:
		value = s.KeepDead
	}
	if value == 0 || value == (stint.Caps{}) || value == (queue.Rate{}) {
		return nil
	}
	return value
}

// inUse returns how much of a limit is in use, or nil if that is not a number.
func (l *Limit) inUse(stats *queue.Stats) *int {
	counts := stats.Queues[l.Queue]
	n := 0
	switch {
	case l.Field == queue.FieldTotal && l.Key == "":
		n = stats.Total.Running
	case l.Field == queue.FieldTotal:
		n = stats.Total.Keys[l.Key]
	case l.Scope != OfQueue:
		return nil
	case l.Field == queue.FieldMax && l.Key == "":
		n = counts.States[queue.Running]
	case l.Field == queue.FieldMax:
		n = counts.Keys[l.Key]
	case l.Field == queue.FieldPending:
		for state, of := range counts.States {
			if !state.Finished() {
				n += of
			}
		}
	default:
		return nil
	}
	return &n
}

// LimitTable prints limits as a table.
func LimitTable(w io.Writer, limits []Limit, now time.Time) error {
	out := table(w)
	_, _ = fmt.Fprintln(out, "FOR\tLIMIT\tVALUE\tIN USE\tSET BY\tSINCE")
	for i := range limits {
		l := &limits[i]
		inUse := "-"
		if l.InUse != nil {
			inUse = fmt.Sprint(*l.InUse)
		}
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", l.For(), l.Name, limitValue(l.Value), inUse, l.setBy(),
			since(l.At, now))
	}
	return out.Flush()
}

// For returns the name of what a limit applies to.
func (l *Limit) For() string {
	of := ""
	switch l.Scope {
	case OfQueue:
		of = "queue " + Plain(l.Queue)
	case OfEach:
		of = "each queue"
	case OfAll:
		of = "all queues"
	}
	if l.Key != "" {
		return fmt.Sprintf("key %s of %s", Plain(l.Key), of)
	}
	return of
}

// String returns a limit with its value, as in running 4.
func (l *Limit) String() string { return l.Name + " " + limitValue(l.Value) }

// setBy names the program or the operator that set a limit, and which value of a program it overrides.
func (l *Limit) setBy() string {
	text := setBy(l.Origin)
	if l.Default && l.Scope == OfQueue {
		text += ", for each queue"
	}
	if l.Program != nil {
		text += fmt.Sprintf(", over %s of the program", limitValue(l.Program))
	}
	return text
}

// setBy returns the name of an operator, or "a program".
func setBy(o queue.Origin) string {
	switch {
	case o.Operator:
		return cmp.Or(Plain(o.By), "an operator")
	case o.By == "":
		return "a program"
	default:
		return "program " + Plain(o.By)
	}
}

// limitValue formats the value of a limit.
func limitValue(value any) string {
	switch v := value.(type) {
	case nil:
		return unlimited
	case queue.Rate:
		if v.Burst > 1 {
			return fmt.Sprintf("%s, burst %d", perTime(v.PerSecond), v.Burst)
		}
		return perTime(v.PerSecond)
	case stint.Caps:
		var caps []string
		for i, n := range []int{v.Lowest, v.Lower, v.Low, v.Normal, v.High, v.Higher, v.Highest} {
			if n > 0 {
				caps = append(caps, fmt.Sprintf("%s=%d", stint.Lowest+stint.Priority(i), n))
			}
		}
		return strings.Join(caps, " ")
	case queue.Retention:
		var parts []string
		if v.Age > 0 {
			parts = append(parts, Span(v.Age))
		}
		if v.Count > 0 {
			parts = append(parts, Count(v.Count, "task"))
		}
		return strings.Join(parts, ", ")
	default:
		return fmt.Sprint(v)
	}
}

// perTime returns a rate per the largest unit of time, up to an hour, that makes it a
// readable number.
func perTime(perSecond float64) string {
	const minute, hour = 60, 3600
	switch {
	case perSecond >= 1:
		return fmt.Sprintf("%.6g/s", perSecond)
	case perSecond*minute >= 1:
		return fmt.Sprintf("%.6g/m", perSecond*minute)
	default:
		return fmt.Sprintf("%.6g/h", perSecond*hour)
	}
}
