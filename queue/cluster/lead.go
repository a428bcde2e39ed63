package cluster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/router"
	"github.com/stintgo/stint/server"
)

// itemMax limits a task in a call of another node, in bytes: the store has its own limit,
// which is the same for the leader and its followers.
const itemMax = 48 << 20

// unreachablePause is the pause after the database could not be used.
const unreachablePause = time.Second

// try tries to lead. It returns the store, or the node that leads.
func (n *Node) try(ctx context.Context) (store Store, led queue.Leader, err error) {
	check := router.CheckNew(n.cfg.table, n.cfg.group, func(name string) string {
		if r := n.current.view().roster; r != nil {
			return r.disputed(name)
		}
		return ""
	})
	store, err = n.open(router.WithCheck(ctx, check), queue.Leader{Name: n.self.name, Contact: n.self.contact.String()})
	if err == nil {
		return store, led, nil
	}
	if other, ok := errors.AsType[*queue.LedError](err); ok {
		return nil, other.Leader, nil
	}
	return nil, led, err
}

// run leads and follows until the node is closed. store is the store if this node leads
// already; otherwise it follows led.
func (n *Node) run(store Store, led queue.Leader) {
	for n.current.life.Err() == nil {
		if store != nil {
			yields := n.leadUntil(store)
			closed := n.stepDown(store)
			if yields {
				n.awaitSuccessor(closed)
			}
		} else {
			n.current.lookout.await(n.current.life, led.Left)
		}
		store, led = n.change()
	}
	if store != nil { // the node was closed while it took the lead
		n.stepDown(store)
	}
}

// leadUntil returns when this node cannot lead any more, and reports whether that is because
// another node is to lead.
func (n *Node) leadUntil(store Store) (yields bool) {
	select {
	case <-n.yield: // meant for an earlier lead of this node
	default:
	}
	select {
	case <-store.Lost():
	case <-n.current.life.Done():
	case <-n.yield:
		return true
	}
	return false
}

// awaitSuccessor gives the invited node the time to lead, from the end of the lease on.
func (n *Node) awaitSuccessor(closed <-chan struct{}) {
	const pause = 300 * time.Millisecond
	select {
	case <-closed:
	case <-n.current.life.Done():
	}
	sleep(n.current.life, pause)
}

// change tries to lead until a node leads, and returns the store or the other leader.
func (n *Node) change() (Store, queue.Leader) {
	n.hesitate()
	for n.current.life.Err() == nil {
		store, led, err := n.try(n.current.life)
		switch {
		case err == nil && store != nil:
			n.current.couldNotLead.Store(nil)
			n.lead(store)
			return store, led
		case err == nil:
			n.current.couldNotLead.Store(nil)
			if now := n.current.view().leader; led.Contact != now.Contact || !led.Since.Equal(now.Since) {
				n.follow(led)
			}
			return nil, led
		case n.current.life.Err() == nil:
			n.current.couldNotLead.Store(&err)
			n.cfg.Logger.Warn("this node could not lead at present; trying again", slog.Any("error", err))
		}
		sleep(n.current.life, unreachablePause)
	}
	return nil, queue.Leader{}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// clocksAgree is the difference between the clocks of this host and of the database server
// from which on a node that leads makes its own calls as its followers do: over a connection,
// with times converted.
const clocksAgree = time.Second

// storeOf returns the store for the calls of this node, and whether the store converts times and
// makes failed calls again by itself. While this node leads, that is its own store, unless the
// clock of this host differs from that of the database server at present.
func (n *Node) storeOf(v *view) (store queue.Store, remote bool) {
	if !v.leads() {
		return v.store, true
	}
	off := n.cfg.clock().Sub(v.now())
	if off.Abs() < clocksAgree {
		return v.store, false
	}
	v.differ.Do(func() {
		n.cfg.Logger.Warn("the clock of this host differs from that of the database server, which decides: set the clocks",
			slog.Duration("ahead", off))
	})
	return n.remote, true
}

// lead makes this node the leader.
func (n *Node) lead(store Store) {
	n.current.lookout.led()
	leader := queue.Leader{Name: n.self.name, Since: store.Now(), Contact: n.self.contact.String()}
	r := newRoster(n.self.member(n.current.seats.load()), n.self.contact.address, n.cfg.Logger)
	own := router.Guard(checked{store}, n.cfg.table, n.cfg.group, r.disputed)
	v := &view{
		store:  listed{own, r, queue.Lead{Name: leader.Name, Since: leader.Since}, store.Now},
		leader: leader, at: n.targets.dialer.target(n.self.contact, n.listens), hub: newHub(n.cfg.lease, store), roster: r, now: store.Now,
	}
	v.front = server.New(v.store, server.Config{
		Hosts: []string{n.self.contact.host()}, Token: n.self.contact.token, MaxItem: itemMax, Logger: n.cfg.Logger, Clock: store.Now,
	})
	n.current.replace(v)
	n.cfg.Logger.Info("this node leads", slog.String("address", n.self.contact.address))
}

// follow makes another node the leader.
func (n *Node) follow(led queue.Leader) {
	at, err := parseContact(led.Contact)
	v := &view{store: n.remote, leader: led}
	if err != nil {
		n.cfg.Logger.Error("the leader is not a node of a cluster, so other nodes cannot call it: stop it, or wait",
			slog.String("leader", led.Name), slog.Any("error", err))
	} else {
		v.at = n.targets.dialer.target(at, "")
		n.cfg.Logger.Info("this node follows", slog.String("leader", led.Name), slog.String("address", at.address))
	}
	n.current.lookout.led()
	n.current.replace(v)
}

// stepDown ends the lead of this node: calls wait for the next leader. The store is closed in
// the background, because that takes a while if the database does not answer; then closed is
// closed.
func (n *Node) stepDown(store Store) (closed <-chan struct{}) {
	former := n.current.view()
	n.current.replace(&view{store: n.remote})
	former.hub.close() // before another node can lead
	n.running.Go(former.front.Close)
	done := make(chan struct{})
	n.running.Go(func() {
		defer close(done)
		err := store.Close()
		if err != nil && n.current.life.Err() != nil {
			n.record(err)
		} else if err != nil {
			n.cfg.Logger.Warn("the store was not closed in order", slog.Any("error", err))
		}
	})
	return done
}
