package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// Node is a process that leads a store, works on its tasks, or both.
type Node struct {
	Name    string    `json:"name"`              // host:pid, or the name of the node: in a container host:pid-random
	Address string    `json:"address,omitempty"` // by which the other nodes reach it
	Seen    time.Time `json:"seen,omitzero"`     // when the leader last received its call; zero if unknown
	Leads   bool      `json:"leads"`
	Led     time.Time `json:"led,omitzero"`     // since when it leads; of several groups, the first
	Groups  []string  `json:"groups,omitempty"` // of queues that it leads, if there are several
	Version string    `json:"version,omitempty"`
	Workers []string  `json:"workers,omitempty"`
	Slots   int       `json:"slots"` // of all its workers
	Queues  []string  `json:"queues,omitempty"`
	Since   time.Time `json:"since,omitzero"` // of its first worker
}

// Nodes returns the processes in the statistics of a store, sorted by name, with those that lead
// first.
func Nodes(s *queue.Stats) []Node {
	nodes := make([]Node, 0, 1+len(s.Workers))
	if s.Lead != nil && len(s.Groups) == 0 {
		nodes = append(nodes, Node{Name: s.Lead.Name, Leads: true, Led: s.Lead.Since})
	}
	for _, g := range s.Groups {
		if g.Lead != nil {
			at(&nodes, g.Lead.Name).lead(g)
		}
	}
	for _, n := range s.Nodes {
		node := at(&nodes, n.Name)
		node.Address, node.Seen = n.Address, n.Seen
	}
	for i := range s.Workers {
		w := &s.Workers[i]
		at(&nodes, processOf(w, nodes)).add(w)
	}
	slices.SortStableFunc(nodes, func(a, b Node) int {
		switch {
		case a.Leads && !b.Leads:
			return -1
		case b.Leads && !a.Leads:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return nodes
}

// processOf returns the name of the process of a worker: that of its node if stint serve has named the worker
// by it, or host:pid. In a container that is the start of the name of a node, which is returned if it is the only one.
func processOf(w *queue.Worker, nodes []Node) string {
	process := fmt.Sprintf("%s:%d", w.Host, w.PID)
	if strings.HasPrefix(w.Name, process+"-") {
		return w.Name[:strings.LastIndexByte(w.Name, '-')]
	}
	node := ""
	for i := range nodes {
		switch name := nodes[i].Name; {
		case name == process, strings.HasPrefix(name, process+"-") && node != "":
			return process
		case strings.HasPrefix(name, process+"-"):
			node = name
		}
	}
	return cmp.Or(node, process)
}

// at returns the node with a name. If there is none, it appends one.
func at(nodes *[]Node, name string) *Node {
	i := slices.IndexFunc(*nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		i, *nodes = len(*nodes), append(*nodes, Node{Name: name})
	}
	return &(*nodes)[i]
}

// lead adds a group that the process leads.
func (n *Node) lead(g queue.Group) {
	n.Leads, n.Groups = true, append(n.Groups, g.Name)
	if n.Led.IsZero() || g.Lead.Since.Before(n.Led) {
		n.Led = g.Lead.Since
	}
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
	header, several := "NODE\tADDRESS\tSEEN\tLEADS\tWORKS\tSLOTS\tQUEUES\tVERSION", ""
	if slices.ContainsFunc(nodes, func(n Node) bool { return len(n.Groups) > 0 }) {
		header, several = header+"\tGROUPS", "\t"
	}
	_, _ = fmt.Fprintln(out, header)
	for i := range nodes {
		n := &nodes[i]
		seen := n.Seen
		if seen.After(now) { // clocks of hosts that differ by less than a second count as equal
			seen = now
		}
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s%s\n", Plain(n.Name), orDash(Plain(n.Address)),
			since(seen, now), since(n.Led, now), since(n.Since, now), n.Slots, orDash(Plain(strings.Join(n.Queues, ", "))),
			orDash(Plain(n.Version)),
			several+Plain(strings.Join(n.Groups, ", ")))
	}
	return out.Flush()
}
