package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/queue"
)

// warnUnknownQueue warns about a queue that has neither tasks nor workers: its name may
// be misspelled. That is not an error, since a queue begins with its first task. An empty
// name is the default queue, or all queues.
func (c *client) warnUnknownQueue(ctx context.Context, server *remote.Server, name string) error {
	if name == "" {
		return nil
	}
	stats, err := server.Stats(ctx)
	if err != nil {
		return err
	}
	known := knownQueues(&stats)
	if known[name] {
		return nil
	}
	near := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(other string) bool { return !alike(name, other) })
	hint := ""
	if len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	printTo(c.err, "stint: queue %s has neither tasks nor workers%s\n", name, hint)
	return nil
}

// knownQueues returns the queues that have tasks or workers.
func knownQueues(stats *queue.Stats) map[string]bool {
	known := make(map[string]bool)
	for name, counts := range stats.Queues {
		for _, n := range counts.States {
			if n > 0 {
				known[name] = true
			}
		}
	}
	for i := range stats.Workers {
		for name := range stats.Workers[i].Kinds {
			known[name] = true
		}
	}
	return known
}

// alike reports whether one name may be a typing error for another: at most two letters
// are missing, added or different, and fewer than half of them.
func alike(a, b string) bool {
	const slips = 2
	d := editDistance([]rune(a), []rune(b))
	return d <= slips && 2*d < max(len(a), len(b))
}

// editDistance returns the Levenshtein distance between two texts.
func editDistance(a, b []rune) int {
	row := make([]int, len(b)+1) // distances of a prefix of a to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			replaced := diagonal
			if x != y {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
