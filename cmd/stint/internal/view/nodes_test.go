package view_test

import (
	"slices"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
)

// TestC11_NodesInContainers: two servers of containers that share a host name and number their processes
// alike are two nodes, each with its worker. Workers of programs belong to their process.
func TestC11_NodesInContainers(t *testing.T) {
	worker := func(name string, pid int) queue.Worker {
		return queue.Worker{Name: name, Host: "web1", PID: pid, Slots: 2}
	}
	nodes := view.Nodes(&queue.Stats{
		Nodes: []queue.Node{{Name: "web1:1-k3f9x2", Address: "10.0.0.1:1"}, {Name: "web1:1-b7wq4d", Address: "10.0.0.1:2"}},
		Workers: []queue.Worker{
			worker("web1:1-k3f9x2-aaaaaaaa", 1), worker("web1:1-b7wq4d-bbbbbbbb", 1),
			worker("web1:7-cccccccc", 7), worker("mailer-1", 8),
		},
	})
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
		if n.Slots != 2 || len(n.Workers) != 1 {
			t.Errorf("node %s has %d slots of %v", n.Name, n.Slots, n.Workers)
		}
	}
	want := []string{"web1:1-b7wq4d", "web1:1-k3f9x2", "web1:7", "web1:8"}
	if !slices.Equal(names, want) {
		t.Errorf("the nodes are %v, want %v", names, want)
	}
}
