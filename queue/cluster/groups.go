package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/router"
)

// Group is a group of queues, with a store of its own and so a leader of its own. It is not the
// FIFO group of [queue.Options].
type Group struct {
	// Name names the group in messages and in [queue.Stats].
	Name string
	// Queues are the queues of the group. One group has none: the default group, to which all
	// queues belong that no other group names.
	Queues []string
	// Open opens the store of the group to lead it; see [Opener]. Each group needs another
	// store: a schema of PostgreSQL or a prefix of Redis, on one server or several.
	Open Opener
	// Route is as Route of [Config]; "" is the Route of the Config of all groups.
	Route string
	// Store names the database server and the place there, without a password. Processes that
	// have different names for a group log that: they may have different stores, and so two
	// leaders and twice the limits. "" is not compared.
	Store string
}

// Groups is a store that several processes share, whose queues belong to groups. Each group has
// a leader of its own, so that the groups share the work of leading: processes that lead more
// groups than others hand some over, one every few seconds, and calls wait for that moment. It
// is safe for concurrent use.
//
// All processes must have the same groups. The leader of a group refuses calls for queues that
// are of another one by its own list, and new tasks of queues that are of another one by the list
// of any process that follows it, with [queue.ErrInvalid]; it logs which process has other groups.
// So tasks of a queue are not put into two groups, but for the moment before processes with
// different groups know of each other.
//
// What needs tasks of several groups in one step is refused with [queue.ErrInvalid]: tasks of
// several groups in one call of Submit, tasks after tasks of another group, a batch and the
// task after it in different groups, and limits on all queues together. A Unique is of a queue,
// and so of its group. A command and a page of Find for all queues are made in each group.
type Groups struct {
	*router.Store
	clock  clock.Steady
	nodes  []*Node
	table  *router.Table
	life   context.Context //nolint:containedctx // ends with Close
	end    context.CancelFunc
	spread sync.WaitGroup // the goroutine of spread
}

var _ queue.Store = (*Groups)(nil)

// OpenGroups opens a node of each group. cfg is that of all nodes, except that the ports of
// Listen and Address, if they are not 0, are those of the first group: the next group has the
// next port. All groups have to answer: if the database of one of them cannot be reached,
// OpenGroups returns an error, as Open does. The caller closes the groups.
//
// Errors: [queue.ErrInvalid] if a queue belongs to no group or to two, or if a group has
// unfinished tasks or schedules of a queue of another group: a queue changes its group only
// when it has none; and those of [Open].
func OpenGroups(ctx context.Context, groups []Group, cfg Config) (*Groups, error) {
	members := make([]router.Member, len(groups))
	for i, g := range groups {
		members[i] = router.Member{Name: g.Name, Queues: g.Queues, Store: g.Store}
	}
	table, err := router.NewTable(members)
	if err != nil {
		return nil, err
	}
	if err := cfg.checkAddresses(); err != nil {
		return nil, err
	}
	if cfg.Name == "" {
		cfg.Name = defaultName() // one for the nodes of all groups
	}
	if cfg.ledGroups == nil {
		cfg.ledGroups = &ledGroups{every: moveEvery}
	}
	cfg.steady = clock.New()
	g := &Groups{clock: cfg.steady, table: table, nodes: make([]*Node, len(groups))}
	g.life, g.end = context.WithCancel(context.Background())
	errs := make([]error, len(groups))
	var opening sync.WaitGroup
	for i := range groups {
		opening.Go(func() { g.nodes[i], errs[i] = openGroup(ctx, groups[i], i, table, cfg) })
	}
	opening.Wait()
	if err := errors.Join(errs...); err != nil {
		g.end()
		for _, n := range g.nodes {
			if n != nil {
				err = errors.Join(err, n.Close()) //nolint:contextcheck // as Close of a node, which has no context
			}
		}
		return nil, err
	}
	stores, elections := make([]queue.Store, len(groups)), make([]*election, len(groups))
	for i, n := range g.nodes {
		stores[i], elections[i] = n, n.election
	}
	g.Store = router.New(table, stores)
	for i := range g.nodes {
		if err := g.Foreign(ctx, clock.Now(), i); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	g.spread.Go(func() { spread(g.life, elections, cfg.ledGroups.every) })
	return g, nil
}

// openGroup opens the node of the i-th group.
func openGroup(ctx context.Context, group Group, i int, table *router.Table, cfg Config) (n *Node, err error) {
	cfg = cfg.withDefaults()
	cfg.Logger = cfg.Logger.With(slog.String("group", group.Name))
	if group.Route != "" {
		cfg.Route = group.Route
	}
	cfg.table, cfg.group = table, i
	cfg.Listen, cfg.Address = nextPort(cfg.Listen, i), nextPort(cfg.Address, i)
	if n, err = Open(ctx, group.Open, cfg); err != nil {
		return nil, fmt.Errorf("group %s: %w", group.Name, err)
	}
	return n, nil
}

// nextPort adds a number to the port of an address that has been checked, unless the port is 0 or the address
// empty.
func nextPort(address string, by int) string {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	if n == 0 {
		return address
	}
	return net.JoinHostPort(host, strconv.Itoa(n+by))
}

// Node returns the node of a group, nil if there is no such group. It has the limits for work
// other than tasks, and the peers. "" is the default group.
func (g *Groups) Node(group string) *Node {
	if group == "" {
		return g.nodes[g.table.Default()]
	}
	for i, n := range g.nodes {
		if g.table.Name(i) == group {
			return n
		}
	}
	return nil
}

// Clock is as that of [Node].
func (g *Groups) Clock() clock.Steady { return g.clock }

// Close closes all nodes, as in [Node.Close]. Other processes take the groups over at once.
func (g *Groups) Close() error {
	g.end()
	g.spread.Wait()
	return g.Store.Close()
}
