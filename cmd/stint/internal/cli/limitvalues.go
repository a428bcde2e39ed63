package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// limitValues are limits as they are typed; empty ones are not given.
type limitValues struct {
	running, perKey, pending string
	rate, keyRate            string
	burst, keyBurst          int
	caps                     []string
}

// none stands for no limit.
const none = "none"

func (v *limitValues) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&v.running, "running", "", "run at most `N` tasks at once; none means no limit, also below")
	flags.StringVar(&v.perKey, "per-key", "", "run at most `N` tasks of one key at once")
	flags.StringVar(&v.rate, "rate", "", "start at most `N` tasks per time, as in 50/s, 100/m or 1/h")
	flags.IntVar(&v.burst, "burst", 0, "start up to `N` of them at once after idle time (default 1)")
	flags.StringVar(&v.keyRate, "key-rate", "", "start at most `N` tasks of one key per time")
	flags.IntVar(&v.keyBurst, "key-burst", 0, "start up to `N` of them at once after idle time (default 1)")
	flags.StringVar(&v.pending, "pending", "", "refuse to submit when `N` tasks are unfinished")
	flags.StringSliceVar(&v.caps, "cap", nil,
		"start tasks of a tier only while fewer than N run: `TIER=N`, for each tier that has a cap")
}

// change returns the change that sets the given limits for a scope.
func (v *limitValues) change(of *limitScope) (c queue.Change, err error) {
	if err := of.check(); err != nil {
		return c, err
	}
	c.Key = of.key
	var values queue.Settings // under their names for a queue
	var errs []error
	take := func(name, text string, parse func() error) {
		if text == "" {
			return
		}
		field, err := of.field(name)
		switch {
		case err != nil:
		case text == none:
			c.Unlimited = append(c.Unlimited, field)
		default:
			err = parse()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
	}
	take("running", v.running, func() error { return parseLimit(v.running, &values.Max) })
	take("per-key", v.perKey, func() error { return parseLimit(v.perKey, &values.PerKey) })
	take("pending", v.pending, func() error { return parseLimit(v.pending, &values.Pending) })
	take("rate", v.rate, func() error { return parseRate(v.rate, v.burst, &values.Rate) })
	take("key-rate", v.keyRate, func() error { return parseRate(v.keyRate, v.keyBurst, &values.KeyRate) })
	take("cap", strings.Join(v.caps, ","), func() error { return parseCaps(v.caps, &values.Caps) })
	if err := errors.Join(append(errs, v.contradictions(&values))...); err != nil {
		return c, err
	}
	if c.Set = values; of.all {
		c.Set = queue.Settings{Total: values.Max, TotalPerKey: values.PerKey}
	}
	if len(c.Set.Fields()) == 0 && len(c.Unlimited) == 0 {
		return c, errors.New("give a limit to set, as in --running 4")
	}
	return c, nil
}

// contradictions reports limits that make another limit unreachable.
func (v *limitValues) contradictions(s *queue.Settings) error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(v.burst != 0 && (v.rate == "" || v.rate == none), "--burst needs a --rate, as in 50/s")
	refuse(v.keyBurst != 0 && (v.keyRate == "" || v.keyRate == none), "--key-burst needs a --key-rate, as in 5/s")
	refuse(v.burst < 0, "--burst is negative: give 1 or more")
	refuse(v.keyBurst < 0, "--key-burst is negative: give 1 or more")
	refuse(s.Max > 0 && s.PerKey > s.Max, "--per-key %d is above --running %d, and would never be reached: give less, "+
		"or leave it out", s.PerKey, s.Max)
	for i, limit := range capsByTier(&s.Caps) {
		refuse(s.Max > 0 && *limit > s.Max, "--cap %s=%d is above --running %d, and would never be reached: give less, "+
			"or leave it out", stint.Lowest+stint.Priority(i), *limit, s.Max)
	}
	return errors.Join(errs...)
}

// parseLimit parses a number of tasks.
func parseLimit(text string, n *int) error {
	number, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a number of tasks: give one, as in 4, or none for no limit", text)
	case number < 1:
		return fmt.Errorf("%d is not a limit: give 1 or more, none for no limit, or use stint pause to start nothing", number)
	}
	*n = number
	return nil
}

// parseRate parses a rate of starts.
func parseRate(text string, burst int, r *queue.Rate) error {
	if startsNothing(text) {
		return fmt.Errorf("%s would start nothing: give more, as in 5/s, none for no limit, or use stint pause", text)
	}
	perSecond, err := stint.ParseRate(text)
	if err != nil {
		return err
	}
	*r = queue.Rate{PerSecond: perSecond, Burst: burst}
	return nil
}

// startsNothing reports whether a rate is 0 per any time; [stint.ParseRate] would call it
// too small.
func startsNothing(rate string) bool {
	amount, _, _ := strings.Cut(rate, "/")
	return amount != "" && strings.Trim(amount, "0.") == ""
}

// parseCaps parses the caps of tiers.
func parseCaps(texts []string, caps *stint.Caps) error {
	limits := capsByTier(caps)
	for _, text := range texts {
		name, number, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("%q is not TIER=N, as in low=2; for no caps at all, give none alone", text)
		}
		tier, err := stint.ParsePriority(name)
		if err != nil {
			return err
		}
		limit := limits[tier-stint.Lowest]
		if *limit != 0 {
			return fmt.Errorf("tier %s has two caps: give one", tier)
		}
		if number == none {
			return fmt.Errorf("%s: leave tier %s out, which then has no cap, since --cap sets the caps of all tiers; "+
				"for no caps at all, give --cap none", text, tier)
		}
		if err := parseLimit(number, limit); err != nil {
			return err
		}
	}
	return nil
}

// capsByTier returns the caps, the lowest tier first.
func capsByTier(c *stint.Caps) []*int {
	return []*int{&c.Lowest, &c.Lower, &c.Low, &c.Normal, &c.High, &c.Higher, &c.Highest}
}
