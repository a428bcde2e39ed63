package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/storetest"
)

// nodes opens a leader and followers, whose permits have a lease.
func nodes(t *testing.T, k kind, n int, lease time.Duration) (all []*cluster.Node) {
	t.Helper()
	opener := k.opener(t, storetest.Config{})
	for i := range n {
		node, err := cluster.OpenWith(t.Context(), opener, cluster.Config{Name: fmt.Sprint("node", i)}, lease)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closes(t, node) })
		all = append(all, node)
	}
	return all
}

func slots(t *testing.T, n *cluster.Node, most int) *cluster.Slots {
	t.Helper()
	s, err := n.Slots("limit", cluster.SlotsConfig{Max: most})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestC11_SlotsContract: one leader and two followers keep the contract of slots.
func TestC11_SlotsContract(t *testing.T) {
	for _, k := range contractKinds() {
		t.Run(k.name, func(t *testing.T) {
			slotstest.Run(t, func(t *testing.T, limit, n int) (all []stint.Slots) {
				t.Helper()
				hosts := nodes(t, k, 3, 500*time.Millisecond)
				for i := range n {
					all = append(all, slots(t, hosts[(i+1)%3], limit))
				}
				return all
			})
		})
	}
}
