package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// declinedFor times the interval of spread is how long a process that has declined a group is not
// asked again: another one may lead more groups, but few enough, and take it.
const declinedFor = 6

// spread hands groups of this process over to processes that lead fewer, one at a time and about one
// in every, until ctx ends.
func spread(ctx context.Context, nodes []*election, every time.Duration) {
	declined := make(map[string]time.Time) // when to ask a process again, by its name
	for ctx.Err() == nil {
		// Not all processes at the same time.
		sleep(ctx, every+time.Duration(rand.Int64N(int64(every)/2))) //nolint:gosec // no secret
		now := clock.Now()
		maps.DeleteFunc(declined, func(_ string, again time.Time) bool { return !now.Before(again) })
		n, to, leads := surplus(nodes, now, func(name string) bool { return !declined[name].IsZero() })
		if n == nil {
			continue
		}
		err := n.handOver(ctx, to, leads)
		if err != nil {
			declined[to.Name] = now.Add(declinedFor * every)
		}
		if err != nil && !errors.Is(err, errDeclined) && ctx.Err() == nil {
			n.log.Warn("a group could not be handed over; trying again",
				slog.String("to", to.Name), slog.Any("error", err))
		}
	}
}

// surplus returns a node to hand over and the one that is to lead instead, if the process
// leads at least two groups more than another one that is not omitted.
func surplus(nodes []*election, now time.Time, omit func(name string) bool) (from *election, to member, leads int) {
	var views []*view
	for _, n := range nodes {
		v := n.state.view()
		views = append(views, v)
		if v.leads() {
			leads++
		}
	}
	for i, v := range views {
		if !v.leads() {
			continue
		}
		least := v.term.roster.least(now, omit)
		if len(least) == 0 || least[0].Leads+2 > leads || from != nil && least[0].Leads >= to.Leads {
			continue
		}
		from, to = nodes[i], least[rand.IntN(len(least))] //nolint:gosec // no secret
	}
	return from, to, leads
}
