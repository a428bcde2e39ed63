package stint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Priority is one of seven tiers. A task of a higher tier starts before one of
// a lower tier, except in the turns of the starvation guard (see [Scheduler]).
// The zero value is [Normal].
type Priority int8

// The tiers, lowest first. Their numbers are part of the API: they are what
// [ParsePriority] accepts and what stores and wires carry. Tiers is how many there are.
const (
	Lowest Priority = iota - 3
	Lower
	Low
	Normal
	High
	Higher
	Highest

	Tiers = 7
)

// ErrPriority is wrapped by the errors of [ParsePriority] and
// [Priority.UnmarshalText].
var ErrPriority = errors.New("unknown priority")

var priorityNames = [Tiers]string{"lowest", "lower", "low", "normal", "high", "higher", "highest"}

// ParsePriority reads a tier from its name in any letter case ("lowest" …
// "highest", and the aliases "idle" for the lowest and "critical" for the
// highest) or its number ("-3" … "3", "+2"). Space around it is ignored. For any
// other text the error wraps [ErrPriority] and lists what is accepted.
func ParsePriority(text string) (Priority, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	for i, name := range priorityNames {
		if word == name {
			return priorityOf(i), nil
		}
	}
	switch word {
	case "critical":
		return Highest, nil
	case "idle":
		return Lowest, nil
	}
	if n, err := strconv.Atoi(word); err == nil && n >= int(Lowest) && n <= int(Highest) {
		return Priority(n), nil
	}
	return Normal, fmt.Errorf("%w %q: use %s, idle, critical or a number from %d to +%d",
		ErrPriority, text, strings.Join(priorityNames[:], ", "), Lowest, Highest)
}

// String returns the tier's name, or priority(n) for a value that is not a tier.
func (p Priority) String() string {
	if !p.Valid() {
		return "priority(" + strconv.Itoa(int(p)) + ")"
	}
	return priorityNames[p.index()]
}

// Valid reports whether p is one of the seven tiers.
func (p Priority) Valid() bool { return p >= Lowest && p <= Highest }

// MarshalText returns the tier's name, or an error for a value that is not a tier.
func (p Priority) MarshalText() ([]byte, error) {
	if !p.Valid() {
		return nil, fmt.Errorf("%w %d", ErrPriority, int(p))
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads what [ParsePriority] accepts.
func (p *Priority) UnmarshalText(text []byte) error {
	parsed, err := ParsePriority(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}

// index maps the tiers to 0 … 6, lowest first, as arrays and the policy count
// them.
func (p Priority) index() int { return int(p - Lowest) }

func priorityOf(index int) Priority { return Priority(index) + Lowest }

// mustValid returns p, and panics if p is not a tier: that is a bug of the caller,
// and would be an index out of range later.
func (p Priority) mustValid() Priority {
	if !p.Valid() {
		panic("stint: " + p.String() + " is not a tier; use stint.Lowest … stint.Highest")
	}
	return p
}

type priorityKey struct{}

// WithPriority returns a context that carries p. Schedulers, limiters and
// streams without a tier of their own take it from their context, so a priority
// set where a request enters follows the request's work everywhere. It panics
// if p is not a tier.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p.mustValid())
}

// PriorityFrom returns the priority that ctx carries, or [Normal].
func PriorityFrom(ctx context.Context) Priority {
	p, _ := ctx.Value(priorityKey{}).(Priority)
	return p
}
