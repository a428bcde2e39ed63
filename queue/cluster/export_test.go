package cluster

import (
	"context"
	"net/http"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// OpenAround is Open with a handler around what the leader serves.
func OpenAround(ctx context.Context, open Opener, cfg Config, around func(http.Handler) http.Handler) (*Node, error) {
	cfg.around = around
	return Open(ctx, open, cfg)
}

// Submits returns the Submit of a follower whose calls send makes.
func Submits(
	send func(context.Context, time.Time, []queue.NewTask) ([]queue.Receipt, error),
) func(context.Context, time.Time, []queue.NewTask) ([]queue.Receipt, error) {
	return (&submits{send: send, patience: 20 * time.Second}).submit
}

// NameIn returns the name of a node of a process in a namespace of process numbers.
func NameIn(namespace, host string, pid int) string { return nameIn(namespace, host, pid) }

// ListenError returns the error of a node that cannot listen.
func ListenError(ctx context.Context, err error) error { return listenError(ctx, err) }

// Checked returns the store of a node that leads.
func Checked(s Store) queue.Store { return checked{s} }

// OpenWith is Open with another lease of permits.
func OpenWith(ctx context.Context, open Opener, cfg Config, lease time.Duration) (*Node, error) {
	cfg.lease = lease
	return Open(ctx, open, cfg)
}

// OpenSkewed is Open on a host with another clock.
func OpenSkewed(ctx context.Context, open Opener, cfg Config, clock func() time.Time) (*Node, error) {
	cfg.clock = clock
	return Open(ctx, open, cfg)
}

// OpenGroupsEvery is OpenGroups with another time between moves.
func OpenGroupsEvery(ctx context.Context, groups []Group, cfg Config, every time.Duration) (*Groups, error) {
	cfg.ledGroups = &ledGroups{every: every}
	return OpenGroups(ctx, groups, cfg)
}

// OpenGroupsDeclining is OpenGroups for a process that takes over no group from another one.
func OpenGroupsDeclining(ctx context.Context, groups []Group, cfg Config) (*Groups, error) {
	cfg.ledGroups = &ledGroups{every: time.Hour, accepted: time.Now()}
	return OpenGroups(ctx, groups, cfg)
}

// Network is what nodes are connected by, and Transport the connections to one.
type (
	Network   = network
	Transport = transport
)

// OpenGroupsOver is OpenGroups with a network in place of TCP and TLS.
func OpenGroupsOver(ctx context.Context, groups []Group, cfg Config, n Network) (*Groups, error) {
	cfg.network = n
	return OpenGroups(ctx, groups, cfg)
}

// Accepts returns whether a process that leads a number of groups, and accepts an invitation in
// every at most, accepts each of some invitations: a time and the groups that the other leads.
func Accepts(leads int, every time.Duration, at []time.Time, others []int) (accepted []bool) {
	g := &ledGroups{every: every}
	g.leads.Store(int32(leads)) //nolint:gosec // a small number
	for i := range at {
		accepted = append(accepted, g.accept(others[i], at[i]))
	}
	return accepted
}

// LostAtClose closes a node with a function on a slot, in a bubble of synctest, and returns the
// grants that the cluster reports to the scheduler as lost. The goroutine that calls into schedulers wakes up
// after the node has been closed and before its permits end.
func LostAtClose() (lost []stint.Grant, err error) {
	state := newNodeState(nil)
	p := newPermits(state, "node", permitLease)
	n := &Node{state: state, permits: p}
	p.begin.Do(func() {}) // the goroutines are started below
	s, err := n.Slots("limit", SlotsConfig{Max: 1})
	if err != nil {
		return nil, err
	}
	s.Bind(func() {}, func(g stint.Grant, _ error) { lost = append(lost, g) })
	s.grants[1] = struct{}{} // a function runs on it
	p.leave(state.life)
	state.end(queue.ErrClosed)
	go p.call()
	synctest.Wait()
	p.end(queue.ErrClosed) // by watch
	synctest.Wait()
	return lost, nil
}

// LeaderOf returns a node that leads with a store. It serves no other nodes and is not closed.
func LeaderOf(s queue.Store) *Node {
	cfg, state := Config{}.withDefaults(), newNodeState(nil)
	state.replace(&view{term: &term{calls: s, now: cfg.clock}})
	return &Node{state: state, calls: &caller{state: state, clock: cfg.clock, patience: cfg.Patience}}
}
