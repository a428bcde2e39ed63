package storetest

import (
	"fmt"
	"strings"

	"github.com/stintgo/stint/queue"
)

// commandOfNoIDs shows that a command for an empty list of IDs changes no task, with or
// without All.
func commandOfNoIDs(c *trial) {
	waits := c.add(queue.Options{})
	for _, f := range []queue.Filter{{IDs: []queue.ID{}}, {IDs: []queue.ID{}, Queue: queue.DefaultQueue}} {
		for _, all := range []bool{false, true} {
			if n := c.commandWith(queue.Command{Do: queue.OrderCancel, Filter: f, All: all}); n != 0 {
				c.Errorf("with All %t, cancelling no IDs by %+v cancels %d", all, f, n)
			}
		}
	}
	c.is(queue.Waiting, waits)
}

// commandOfAll shows that a command whose filter sets no field needs All, also with a
// Limit, and that All does not widen a filter.
func commandOfAll(c *trial) {
	ids := c.several(3, queue.Options{})
	for _, cmd := range []queue.Command{
		{}, {Limit: 1}, {Filter: queue.Filter{States: []queue.State{}, Labels: map[string]string{}}},
	} {
		cmd.Do = queue.OrderPause
		_, err := c.Store.Command(c.Context(), c.now, cmd)
		c.refused(fmt.Sprintf("%+v", cmd), err, queue.ErrInvalid)
		if text := fmt.Sprint(err); !strings.Contains(text, "set All") {
			c.Errorf("the error %q does not name the remedy", text)
		}
	}
	c.is(queue.Waiting, ids[0])
	if n := c.commandWith(queue.Command{Do: queue.OrderPause, Filter: queue.Filter{IDs: ids[:1]}, All: true}); n != 1 {
		c.Errorf("All with 1 ID pauses %d tasks", n)
	}
	if n := c.commandWith(queue.Command{Do: queue.OrderPause, All: true}); n != 2 {
		c.Errorf("All pauses %d of the 2 remaining tasks", n)
	}
}
