package backlog_test

import (
	"testing"

	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/internal/seeded"
)

// Turned is called for each change of HasRoom, and only for one.
func TestModel_TurnedFollowsHasRoom(t *testing.T) {
	rnd := seeded.Rand(t)
	names := []string{"", "a", "b", "c"}
	aside, shared := map[string]bool{}, map[string]int{"c": 3}
	b := backlog.New[int](backlog.Config{
		Max: 100, PerKey: 2, SharedLimits: shared,
		Turned: func(key string, room bool) {
			if aside[key] == !room {
				t.Fatalf("key %q turned twice to room: %v", key, room)
			}
			aside[key] = !room
		},
	})
	queued := 0
	for range 100_000 {
		name, keys := names[rnd.IntN(len(names))], b.Keys()
		switch rnd.IntN(9) {
		case 0:
			keys.Admit(name)
		case 1, 2:
			keys.Finish(name)
		case 3:
			keys.Block(name, backlog.Cause(1+rnd.IntN(2)))
		case 4, 5:
			keys.Unblock(name, backlog.Cause(1+rnd.IntN(2)))
		case 6:
			keys.SetPerKey(rnd.IntN(4))
		case 7:
			shared["c"] = rnd.IntN(4)
			keys.Review("c")
		case 8:
			if queued == 0 || rnd.IntN(2) == 0 {
				b.Push(new(backlog.Entry[int]), backlog.Arrival{Tier: int8(rnd.IntN(backlog.Tiers)), Key: name, Weight: 1})
				queued++
			} else if x := b.Peek(0); x != nil {
				b.Start(x)
				queued--
			}
		}
		for _, name := range names {
			if keys.HasRoom(name) == aside[name] {
				t.Fatalf("key %q has room: %v, and Turned said %v", name, keys.HasRoom(name), !aside[name])
			}
		}
	}
}
