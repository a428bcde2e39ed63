package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue/internal/router"
)

// identity is a node as the others know it. It does not change.
type identity struct {
	name    string
	contact contact
	table   *router.Table // of its process
	group   int           // in table
}

// member is the node for the leader. leads is the number of groups that its process leads.
func (i *identity) member(leads int) member {
	share := i.table.Share(i.group)
	return member{Name: i.name, Contact: i.contact.String(), Leads: leads, Share: &share}
}

// membership makes a node known to each leader, and asks the leader for the other nodes. It is safe
// for concurrent use.
type membership struct {
	self   identity
	state  *nodeState
	dialer dialer
	log    *slog.Logger
}

// of returns the nodes of a host, as the leader knows them.
func (m *membership) of(ctx context.Context, host string) ([]member, error) {
	if v := m.state.view(); v.leads() {
		return v.term.roster.of(host, clock.Now()), nil
	}
	return m.askLeader(ctx, http.MethodGet, url.Values{hostQuery: {host}}, nil)
}

// run makes the node known to each leader, until the node is closed.
func (m *membership) run() {
	var e enrollment
	for m.state.life.Err() == nil {
		v := m.state.view()
		if v != e.of {
			e = enrollment{of: v}
		}
		if v.leads() {
			e.reachSelf(m)
		} else if v.at != nil {
			e.askLeader(m)
		}
		sleep(v.life, enrollEvery)
	}
}

// enrollment is what has come of the calls to the leader of a view. Errors are logged, because
// no other node can lead while the lease of a leader lasts that the others do not reach.
type enrollment struct {
	of       *view
	answered bool // the leader has answered
	failed   bool // the last call has failed
}

// reachSelf calls this node, which leads, at the address that the others were given, until it has
// answered.
func (e *enrollment) reachSelf(m *membership) {
	if e.answered {
		return
	}
	at := m.dialer.target(m.self.contact, "")
	defer at.transport.CloseIdleConnections()
	_, err := m.ask(e.of.life, at, http.MethodGet, url.Values{hostQuery: {m.self.name}}, nil)
	if e.answered = err == nil; !e.answered && e.of.life.Err() == nil {
		m.log.Warn("this node leads, and does not reach itself at its address: if the others do not reach it "+
			"either, correct its --node-address, or open its port",
			slog.String("address", m.self.contact.address), slog.Any("error", err))
	}
}

// askLeader enrolls this node with the leader.
func (e *enrollment) askLeader(m *membership) {
	self := m.self.member(m.state.ledGroups.count())
	led, err := m.askLeader(e.of.life, http.MethodPost, nil, self)
	switch {
	case e.of.life.Err() != nil:
	case err != nil && e.failed: // at the second failure a leader that had gone has been replaced
		m.log.Warn("the node that leads does not answer this one: if that goes on, correct its --node-address, or "+
			"open its port", slog.String("leader", e.of.leader.Name), slog.Any("error", err))
	case err != nil || e.answered || len(led) == 0 || led[0].Share == nil:
	case self.Share.Equal(*led[0].Share):
		warnStores(m.log, led[0].Name, *led[0].Share, *self.Share)
	default:
		m.log.Warn("this node has other groups than the one that leads, and tasks are refused that the two would put "+
			"into different groups: start all processes with the same groups", slog.String("leader", led[0].Name),
			slog.String("its_group_has", led[0].Share.String()), slog.String("the_group_here_has", self.Share.String()))
	}
	e.failed, e.answered = err != nil, e.answered || err == nil
}

// leave removes this node from those that the leader knows, if the leader answers soon.
func (m *membership) leave() {
	if v := m.state.view(); v.at == nil || v.leads() {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), answersWithin)
	defer stop()
	// If it does not, it forgets this node later.
	_, _ = m.askLeader(ctx, http.MethodDelete, nil, m.self.member(m.state.ledGroups.count()))
}

// askLeader sends a message about nodes to the leader, and returns the nodes of its answer.
func (m *membership) askLeader(ctx context.Context, method string, q url.Values, about any) ([]member, error) {
	return m.ask(ctx, toLeader{m.state}, method, q, about)
}

// ask is askLeader over given connections.
func (m *membership) ask(
	ctx context.Context, over http.RoundTripper, method string, q url.Values, about any,
) ([]member, error) {
	body, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, enrolledFor-enrollEvery)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, method, "http://leader"+rosterPath+"?"+q.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set(wire.Client, "cluster")
	res, err := over.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read completely, or useless
	text, err := io.ReadAll(io.LimitReader(res.Body, rosterBytes))
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the leader answers %q: it may be of an older version", res.Status)
	}
	if known, err := strconv.Atoi(res.Header.Get(knownField)); err == nil {
		m.state.timer.answered(known)
	}
	var found []member
	err = json.Unmarshal(text, &found)
	return found, err
}
