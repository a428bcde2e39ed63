package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// Node is a process that leads a store, works on its tasks, or both.
type Node struct {
	Name    string    `json:"name"`              // host:pid
	Address string    `json:"address,omitempty"` // by which the other nodes reach it
	Leads   bool      `json:"leads"`
	Led     time.Time `json:"led,omitzero"` // since when it leads
	Version string    `json:"version,omitempty"`
	Workers []string  `json:"workers,omitempty"`
	Slots   int       `json:"slots"` // of all its workers
	Queues  []string  `json:"queues,omitempty"`
	Since   time.Time `json:"since,omitzero"` // of its first worker
}

// Nodes returns the processes that the counts of a store name, the leader first and the
// others by name.
func Nodes(s *queue.Stats) []Node {
	nodes := make([]Node, 0, 1+len(s.Workers))
	if s.Lead != nil {
		nodes = append(nodes, Node{Name: s.Lead.Name, Leads: true, Led: s.Lead.Since})
	}
	for i := range s.Workers {
		w := &s.Workers[i]
		at(&nodes, fmt.Sprintf("%s:%d", w.Host, w.PID)).add(w)
	}
	for _, n := range s.Nodes {
		at(&nodes, n.Name).Address = n.Address
	}
	slices.SortStableFunc(nodes, func(a, b Node) int {
		switch {
		case a.Leads:
			return -1
		case b.Leads:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return nodes
}

// at returns the node of a name, which it appends if there is none.
func at(nodes *[]Node, name string) *Node {
	i := slices.IndexFunc(*nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		i, *nodes = len(*nodes), append(*nodes, Node{Name: name})
	}
	return &(*nodes)[i]
}

// add adds a worker of the process.
func (n *Node) add(w *queue.Worker) {
	n.Version, n.Slots, n.Workers = w.Version, n.Slots+w.Slots, append(n.Workers, w.Name)
	if n.Since.IsZero() || w.Since.Before(n.Since) {
		n.Since = w.Since
	}
	for name := range w.Kinds {
		if at, found := slices.BinarySearch(n.Queues, name); !found {
			n.Queues = slices.Insert(n.Queues, at, name)
		}
	}
}

// NodeTable prints nodes.
func NodeTable(w io.Writer, nodes []Node, now time.Time) error {
	out := table(w)
	_, _ = fmt.Fprintln(out, "NODE\tADDRESS\tLEADS\tWORKS\tSLOTS\tQUEUES\tVERSION")
	for i := range nodes {
		n := &nodes[i]
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", plain(n.Name), plain(n.Address), since(n.Led, now),
			since(n.Since, now), n.Slots, plain(strings.Join(n.Queues, ", ")), plain(n.Version))
	}
	return out.Flush()
}
