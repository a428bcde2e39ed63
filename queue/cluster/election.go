package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/router"
)

const (
	// unreachablePause is the pause after the database could not be used.
	unreachablePause = time.Second
	// hesitateEach is the pause before an attempt to lead, for each group that the process
	// leads already, up to hesitateMost: a process that leads fewer comes first.
	hesitateEach = 100 * time.Millisecond
	hesitateMost = time.Second
)

// election makes a node lead whenever it can, and follow the node that leads otherwise. The database
// decides which node can. Only the election replaces the view of its node. Its owner calls try, start
// and wait; handOver is safe for concurrent use.
type election struct {
	open    Opener
	self    identity
	state   *nodeState
	dialer  dialer
	targets *targets      // nodes to hand over to
	listens string        // the address at which the endpoint of this node listens
	lease   time.Duration // of permits
	log     *slog.Logger
	yield   chan struct{}  // receives when another node is to lead in place of this one
	running sync.WaitGroup // run, and the ends of terms

	mu     sync.Mutex // guards closed
	closed error      // of stores that were closed with the node
}

// try tries to lead. It returns the store, or the node that leads.
func (e *election) try(ctx context.Context) (store Store, led queue.Leader, err error) {
	check := router.CheckNew(e.self.table, e.self.group, func(name string) string {
		if t := e.state.view().term; t != nil {
			return t.roster.disputed(name)
		}
		return ""
	})
	store, err = e.open(router.WithCheck(ctx, check), queue.Leader{Name: e.self.name, Contact: e.self.contact.String()})
	if err == nil {
		return store, led, nil
	}
	if other, ok := errors.AsType[*queue.LedError](err); ok {
		return nil, other.Leader, nil
	}
	return nil, led, err
}

// start leads with a store, or follows led if store is nil, and goes on until the node is closed.
func (e *election) start(store Store, led queue.Leader) {
	var t *term
	if store != nil {
		t = e.lead(store)
	} else {
		e.follow(led)
	}
	e.running.Go(func() { e.run(t, led.Left) })
}

// run leads and follows until the node is closed. t is the term if this node leads already;
// otherwise the lease of the node that leads ends after left.
func (e *election) run(t *term, left time.Duration) {
	for e.state.life.Err() == nil {
		if t != nil {
			yields := e.leadUntil(t)
			closed := e.stepDown(t)
			if yields {
				e.awaitSuccessor(closed)
			}
		} else {
			e.state.timer.await(e.state.life, left)
		}
		t, left = e.change()
	}
	if t != nil { // the node was closed while it took the lead
		e.stepDown(t)
	}
}

// leadUntil returns when this node cannot lead any more, and reports whether that is because
// another node is to lead.
func (e *election) leadUntil(t *term) (yields bool) {
	select {
	case <-e.yield: // meant for an earlier term of this node
	default:
	}
	select {
	case <-t.opened.Lost():
	case <-e.state.life.Done():
	case <-e.yield:
		return true
	}
	return false
}

// awaitSuccessor gives the invited node the time to lead, from the end of the lease on.
func (e *election) awaitSuccessor(closed <-chan struct{}) {
	const pause = 300 * time.Millisecond
	select {
	case <-closed:
	case <-e.state.life.Done():
	}
	sleep(e.state.life, pause)
}

// change tries to lead until a node leads. It returns the term of this node, or the time until the
// lease of the other one ends.
func (e *election) change() (t *term, left time.Duration) {
	e.hesitate()
	for e.state.life.Err() == nil {
		store, led, err := e.try(e.state.life)
		switch {
		case err == nil && store != nil:
			e.state.couldNotLead.Store(nil)
			return e.lead(store), 0
		case err == nil:
			e.state.couldNotLead.Store(nil)
			if now := e.state.view().leader; led.Contact != now.Contact || !led.Since.Equal(now.Since) {
				e.follow(led)
			}
			return nil, led.Left
		case e.state.life.Err() == nil:
			e.state.couldNotLead.Store(&err)
			e.log.Warn("this node could not lead at present; trying again", slog.Any("error", err))
		}
		sleep(e.state.life, unreachablePause)
	}
	return nil, 0
}

// hesitate lets processes that lead fewer groups try first.
func (e *election) hesitate() {
	if n := e.state.ledGroups.count(); n > 0 && !e.state.timer.isInvited() {
		sleep(e.state.life, min(time.Duration(n)*hesitateEach, hesitateMost))
	}
}

// lead makes this node the leader.
func (e *election) lead(store Store) *term {
	e.state.timer.led()
	t := newTerm(store, &e.self, e.state.ledGroups.count(), e.lease, e.log)
	e.state.replace(&view{leader: t.leader, at: e.dialer.target(e.self.contact, e.listens), term: t})
	e.log.Info("this node leads", slog.String("address", e.self.contact.address))
	return t
}

// follow makes another node the leader.
func (e *election) follow(led queue.Leader) {
	at, err := parseContact(led.Contact)
	v := &view{leader: led}
	if err != nil {
		e.log.Error("the leader is not a node of a cluster, so other nodes cannot call it: stop it, or wait",
			slog.String("leader", led.Name), slog.Any("error", err))
	} else {
		v.at = e.dialer.target(at, "")
		e.log.Info("this node follows", slog.String("leader", led.Name), slog.String("address", at.address))
	}
	e.state.timer.led()
	e.state.replace(v)
}

// stepDown ends the term of this node: calls wait for the next leader. The store is closed in
// the background, because that takes a while if the database does not answer; then closed is
// closed.
func (e *election) stepDown(t *term) (closed <-chan struct{}) {
	e.state.replace(&view{})
	t.hub.close() // before another node can lead
	e.running.Go(t.front.Close)
	done := make(chan struct{})
	e.running.Go(func() {
		defer close(done)
		err := t.opened.Close()
		if err != nil && e.state.life.Err() != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.closed = errors.Join(e.closed, err)
		} else if err != nil {
			e.log.Warn("the store was not closed in order", slog.Any("error", err))
		}
	})
	return done
}

// wait waits for the end of the last term, after the node has ended, and returns the errors of that.
func (e *election) wait() error {
	e.running.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// handOver lets another node lead in place of this one, if it accepts. Calls wait for it.
func (e *election) handOver(ctx context.Context, to member, leads int) error {
	c, err := parseContact(to.Contact)
	if err != nil {
		return err
	}
	const within = time.Second
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://node"+leadPath+"?"+leadsQuery+"="+strconv.Itoa(leads), http.NoBody)
	if err != nil {
		return err
	}
	res, err := e.targets.of(to.Contact, c).RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // it is empty
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusConflict:
		return errDeclined
	default:
		return fmt.Errorf("node %s answers %q", to.Name, res.Status)
	}
	e.log.Info("this node hands its group over", slog.String("to", to.Name))
	select {
	case e.yield <- struct{}{}:
	default:
	}
	return nil
}

// errDeclined is the error of a node that does not take a group over.
var errDeclined = errors.New("the other node has declined")
