package view_test

import (
	"slices"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
)

// TestC11_NodesInContainers: two servers of containers that share a host name and number their processes
// alike are two nodes, each with its worker. The worker of a program belongs to its process: to the node
// of that process, also in a container, unless two nodes may be it.
func TestC11_NodesInContainers(t *testing.T) {
	worker := func(name, host string, pid int) queue.Worker {
		return queue.Worker{Name: name, Host: host, PID: pid, Slots: 2}
	}
	nodes := view.Nodes(&queue.Stats{
		Lead: &queue.Lead{Name: "web2:1-m5d2ra"},
		Nodes: []queue.Node{
			{Name: "web1:1-k3f9x2", Address: "10.0.0.1:1"},
			{Name: "web1:1-b7wq4d", Address: "10.0.0.1:2"},
			{Name: "web3:1-p8w4tz"},
			{Name: "web3:12-s6h7ne"},
			{Name: "web4:1"},
			{Name: "web4:1-v2c9jy"},
		},
		Workers: []queue.Worker{
			worker("web1:1-k3f9x2-aaaaaaaa", "web1", 1), worker("web1:1-b7wq4d-bbbbbbbb", "web1", 1),
			worker("web1:7-cccccccc", "web1", 7), worker("mailer-1", "web1", 8),
			worker("web1-1-1x7abc", "web1", 1), worker("web2-1-1x7abc", "web2", 1), worker("web3-1-1x7abc", "web3", 1),
			worker("web3-12-1x7abc", "web3", 12), worker("web4-1-1x7abc", "web4", 1), worker("web4:1-v2c9jy-d", "web4", 1),
		},
	})
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
		if n.Slots != 2 || len(n.Workers) != 1 {
			t.Errorf("node %s has %d slots of %v", n.Name, n.Slots, n.Workers)
		}
	}
	want := []string{
		"web2:1-m5d2ra", "web1:1", "web1:1-b7wq4d", "web1:1-k3f9x2", "web1:7", "web1:8", "web3:1-p8w4tz", "web3:12-s6h7ne",
		"web4:1", "web4:1-v2c9jy",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the nodes are %v, want %v", names, want)
	}
}
