// Package cluster lets several processes, on one host or many, work on one store of a
// database server. Each of them opens a [Node], which is a [queue.Store]: submit to it, and
// run workers on it, in every process.
//
//	node, err := cluster.Open(ctx, func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
//		return pgstore.Open(ctx, "postgres://db.example.org/jobs",
//			pgstore.Config{Name: self.Name, Contact: self.Contact})
//	}, cluster.Config{Route: "db.example.org:5432"})
//	...
//	defer node.Close()
//	q := queue.New(node, queue.Config{})
//
// # Leader and followers
//
// One node leads: it has the store open, and makes every decision, so that limits, order,
// fairness and reasons are those of one process. The other nodes follow: they send their
// calls to the leader. The database keeps the tasks, and decides which node leads: the first one
// leads, until it closes or its lease ends. Then another one does. While no node leads,
// calls wait, about as long as [Config.Patience]. A call that was under way is made again at
// the next leader, and has one effect. There are three exceptions: Command returns the
// number of the last attempt; if it has a Limit, each attempt may change that many tasks; and
// the tasks of a claim whose answer is lost with its leader have no worker until their leases
// end.
//
// Workers are not affected by a change of leader: leases of tasks are in the database. The
// tasks of a node that is killed begin again when their leases have ended.
//
// # What a node may answer
//
// A change is made in the database only if the node leads there, whatever the state of the node
// says. All else, such as what is read and why a call is refused, is answered only if the lease
// of the node had not ended by then. So a node that was stopped, or cut off from the database,
// answers nothing that is out of date.
//
// # Limits for work that is not a task
//
// [Node.Slots] limits how many functions of schedulers run at once on all nodes, and
// [Node.Bucket] the rate of limiters of all nodes, whether or not they have to do with tasks:
//
//	slots, err := node.Slots("license", cluster.SlotsConfig{Max: 5})
//	...
//	s := stint.New(5, stint.Config{Slots: slots})
//
// # Groups
//
// One leader decides for all queues of a store. [Groups] gives queues stores of their own, with
// a leader each.
//
// # Between nodes
//
// The leader serves the others over TLS at [Config.Listen]. Its row in the database has
// the address, a token and the hash of its certificate, all three new for each process:
// there is nothing to distribute, and a process that cannot read the database can neither
// call the leader nor pass for it.
package cluster

// A node is made of parts. Each knows those below it, and none beside it:
//
//	Groups, spread
//	Node
//	election, caller, membership, permits, endpoint
//	nodeState: the present view, which has the term of a node that leads; ledGroups, electionTimer
//	term: hub, roster, checked; identity, contact, dialer
//
// The files, in that order:
//
//   - cluster.go: Config, Node, its opening and its end
//   - calls.go: the calls of a store
//   - peers.go: Peer, requests to any node
//   - groups.go: Groups, queues with several leaders
//   - spread.go: hands groups over to processes that lead fewer
//   - election.go: takes the lead, follows another node, and changes between the two
//   - caller.go: makes calls at the node that leads, across changes of leader
//   - submit.go: calls of Submit that a follower sends together
//   - membership.go: makes a node known to the leader
//   - slots.go: Slots, a limit over hosts for work that is not a task
//   - rates.go: Bucket, a rate over hosts for work that is not a task
//   - permits.go: the permits of a node, and its session with the leader
//   - endpoint.go: what a node answers the others
//   - leader.go: what a node knows about the leader, and requests to it
//   - ledgroups.go: the groups that a process leads
//   - electiontimer.go: when a node that follows looks whether it can lead
//   - term.go: what a node has while it leads
//   - checked.go: the store of a node that leads
//   - hub.go: the permits of all nodes, at the leader
//   - roster.go: the nodes that the leader knows
//   - contact.go: how the nodes reach each other
//   - name.go: the name of a node that is given none

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/logthrottle"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/router"
)

// Store is a store on a database server that one process at a time leads. The stores of
// packages pgstore and redisstore implement it.
type Store interface {
	queue.Store

	// Lost returns a channel that is closed when this process no longer leads.
	Lost() <-chan struct{}
	// Leads reports whether the lease of this process has not ended.
	Leads() bool
	// Trouble returns why the database server does not do what it is asked at present, and the
	// remedy; nil if it does.
	Trouble() error
	// Now returns the time by the clock of the database server, at which all calls take effect.
	Now() time.Time
}

// Config configures a node. The zero value is for nodes on one host.
type Config struct {
	// Name is the name of this node in messages and [queue.Stats], which no other node has; "" is
	// host:pid, and in a container host:pid-random.
	Name string
	// Listen is the address, host:port, at which this node serves the others while it leads.
	// An empty host is every interface, and port 0 a free port. "" is a free port of the IP
	// address by which this host reaches Route.
	Listen string
	// Address is the host:port by which the other nodes reach Listen, if it differs, for
	// example behind a proxy. A port of 0 is that of Listen.
	Address string
	// Route is a host:port that all nodes reach, usually that of the database; see Listen.
	// "" is this host.
	Route string
	// Patience is about how long a call waits while no node can answer; 0 means 20 s. A Submit that
	// shares a call with others waits at most twice as long. Then its
	// error wraps [queue.ErrUnavailable]. The end of the call's context ends it in any case.
	Patience time.Duration
	// WatchBuffer is the number of events that a watcher may be behind; 0 means 1024.
	WatchBuffer int
	// Handler answers the requests of [Peer.RoundTrip] of other nodes, whether this node leads
	// or not; nil answers none. Only nodes of the cluster reach it.
	Handler http.Handler
	// Logger receives changes of the leader, and errors that no call returns; nil discards
	// them. An error that repeats is logged once, and then once a minute with the number of
	// repetitions.
	Logger *slog.Logger

	around  func(http.Handler) http.Handler // for tests: around what the leader serves
	lease   time.Duration                   // for tests: of permits; 0 is permitLease
	network network                         // for tests: in place of TCP and TLS; nil is none
	clock   func() time.Time                // for tests: of this host; nil is steady
	steady  clock.Steady                    // of all nodes of the process

	// Of a node of a group:
	ledGroups *ledGroups    // of the process; nil without groups
	table     *router.Table // of the process; nil without groups
	group     int           // in table
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = defaultName()
	}
	c.Patience = cmp.Or(c.Patience, 20*time.Second)
	c.lease = cmp.Or(c.lease, permitLease)
	if c.steady == (clock.Steady{}) {
		c.steady = clock.New()
	}
	if c.clock == nil {
		c.clock = c.steady.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = slog.New(logthrottle.New(c.Logger.Handler()))
	if c.table == nil {
		c.table, _ = router.NewTable([]router.Member{{Name: "default"}}) // has no error
	}
	return c
}

// checkAddresses returns an error for each of Listen and Address that is set and is not a host and a port.
// The port is a number, because the other nodes get it in a URL.
func (c *Config) checkAddresses() error {
	var errs []error
	for _, setting := range []struct{ name, address string }{
		{"Listen (--node-listen)", c.Listen}, {"Address (--node-address)", c.Address},
	} {
		if setting.address == "" {
			continue
		}
		_, port, err := net.SplitHostPort(setting.address)
		if err == nil {
			if _, wrong := strconv.ParseUint(port, 10, 16); wrong != nil {
				err = fmt.Errorf("address %s: its port is not a number from 0 to 65535", setting.address)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %w; it is a host and a port, as in 10.0.0.1:7119",
				queue.ErrInvalid, setting.name, err))
		}
	}
	return errors.Join(errs...)
}

// Node is a store that several processes share. It is safe for concurrent use.
type Node struct {
	self     identity
	clock    clock.Steady
	state    *nodeState
	election *election
	calls    *caller
	members  *membership
	permits  *permits
	endpoint *endpoint
	targets  *targets // peers

	running sync.WaitGroup // members.run
	close   sync.Once
	closed  error // what Close returns; set by close
}

var _ queue.Store = (*Node)(nil)

// Clock returns the clock for the times of calls in this process, which was read when the node was
// opened. Setting the system's clock does not change it. [queue.New] uses it.
func (n *Node) Clock() clock.Steady { return n.clock }

// Opener opens a store to lead it. The store lets other processes know the Name and the
// Contact of self. The error is a [queue.LedError] while another process leads.
type Opener func(ctx context.Context, self queue.Leader) (Store, error)

// Open opens a node, which calls open whenever it may take the lead. Open returns when this
// node leads or follows, or with the error of open. The caller closes the node.
func Open(ctx context.Context, open Opener, cfg Config) (*Node, error) {
	if cfg.Patience < 0 || cfg.WatchBuffer < 0 {
		return nil, fmt.Errorf("%w: Patience is %s and WatchBuffer %d; they are 0 for the default, or more",
			queue.ErrInvalid, cfg.Patience, cfg.WatchBuffer)
	}
	if err := cfg.checkAddresses(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	listener, address, err := listen(ctx, &cfg)
	if err != nil {
		if !errors.Is(err, queue.ErrInvalid) {
			err = fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
		}
		return nil, fmt.Errorf("the address for the other nodes: %w", err)
	}
	n, err := newNode(open, cfg, address)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	n.election.listens = listener.Addr().String()
	store, led, err := n.election.try(ctx)
	if err != nil {
		n.state.end(queue.ErrClosed)
		return nil, errors.Join(err, n.calls.remote.Close(), listener.Close())
	}
	n.endpoint.serve(listener, cfg.network)
	n.election.start(store, led)
	n.running.Go(n.members.run)
	return n, nil
}

// newNode returns a node that knows no leader.
func newNode(open Opener, cfg Config, address string) (*Node, error) {
	own, err := newContact(address)
	if err != nil {
		return nil, err
	}
	state := newNodeState(cfg.ledGroups)
	remote, err := newFollower(state, cfg.Patience, cfg.WatchBuffer)
	if err != nil {
		return nil, err
	}
	self := identity{cfg.Name, own, cfg.table, cfg.group}
	dialer := dialer{cfg.Name, cfg.network}
	peers := &targets{dialer: dialer}
	return &Node{
		self: self, clock: cfg.steady, state: state, targets: peers,
		calls:    &caller{state: state, remote: remote, clock: cfg.clock, patience: cfg.Patience},
		permits:  newPermits(state, cfg.Name, cfg.lease),
		members:  &membership{self: self, state: state, dialer: dialer, log: cfg.Logger},
		endpoint: newEndpoint(self, state, &cfg),
		election: &election{
			open: open, self: self, state: state, dialer: dialer, targets: peers, lease: cfg.lease, log: cfg.Logger,
			yield: make(chan struct{}, 1),
		},
	}, nil
}

// listen listens for the other nodes, and returns the address by which they reach this one.
func listen(ctx context.Context, cfg *Config) (l net.Listener, address string, err error) {
	at := cfg.Listen
	if cfg.network != nil {
		return silentListener{}, at, nil
	}
	if at == "" {
		host, err := localAddress(ctx, cfg.Route)
		if err != nil {
			return nil, "", err
		}
		at = net.JoinHostPort(host, "0")
	}
	if l, err = new(net.ListenConfig).Listen(ctx, "tcp", at); err != nil {
		return nil, "", listenError(ctx, err)
	}
	address, err = reachable(l.Addr(), cmp.Or(cfg.Address, at))
	if err != nil {
		return nil, "", errors.Join(err, l.Close())
	}
	return l, address, nil
}

// listenError adds to an error of listening what to do about the address, unless the reason is that the context has
// ended or that files cannot be opened.
func listenError(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return err
	}
	return fmt.Errorf("%w: set Listen (--node-listen) to an IP address of this host and a free port, as in "+
		"10.0.0.1:7119 or 10.0.0.1:0", err)
}

// Close ends all calls with [queue.ErrClosed]. If this node leads, another one can lead at
// once. Leases of tasks stay, as in [httpstore.Store.Close]: a [queue.Queue] releases those
// of its tasks when its Run ends.
func (n *Node) Close() error {
	n.close.Do(func() {
		ctx, stop := context.WithTimeout(context.Background(), answersWithin)
		n.permits.leave(ctx)
		stop()
		n.members.leave()
		n.state.end(queue.ErrClosed)
		remote := n.calls.remote.Close() // calls at the leader end now
		n.running.Wait()
		n.permits.running.Wait()
		ended := n.election.wait()
		if at := n.state.view().at; at != nil {
			at.transport.CloseIdleConnections()
		}
		// What the store has answered is sent.
		ctx, stop = context.WithTimeout(context.Background(), answersWithin)
		defer stop()
		err := n.endpoint.close(ctx)
		n.targets.close()
		n.closed = errors.Join(ended, err, remote)
	})
	return n.closed
}

// answersWithin is how long Close waits for the last answers to other nodes.
const answersWithin = time.Second

// Leader returns the node that leads, and whether it is this one. The zero Leader means that
// none is known.
func (n *Node) Leader() (leader queue.Leader, own bool) {
	v := n.state.view()
	return v.leader, v.leads()
}
