package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/queue"
)

// view is what a node knows about the leader. A view does not change: it is replaced.
type view struct {
	leader queue.Leader // zero if none is known
	at     *target      // of the leader; nil if none is known
	term   *term        // of this node; nil unless it leads

	life context.Context //nolint:containedctx // ends when the view is replaced
	end  context.CancelFunc
}

func (v *view) leads() bool { return v.term != nil }

// atEnd calls f when the view is replaced, unless stop is called before.
func (v *view) atEnd(f func()) (stop func() bool) { return context.AfterFunc(v.life, f) }

// nodeState has the present view and the life of a node. The parts of the node share it and
// know each other only by it: election replaces the view, the others read it, and requests to the
// leader report to the electionTimer whether it answers. It is safe for concurrent use.
type nodeState struct {
	life      context.Context //nolint:containedctx // of the node
	end       context.CancelCauseFunc
	ledGroups *ledGroups // of the process; nil without groups
	timer     *electionTimer

	present atomic.Pointer[view]
	// couldNotLead is why this node could not take over the lead when it tried last; nil if it did,
	// or found another node that leads.
	couldNotLead atomic.Pointer[error]
}

// newNodeState returns the state of a node that knows no leader.
func newNodeState(g *ledGroups) *nodeState {
	s := &nodeState{ledGroups: g, timer: newElectionTimer()}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.replace(&view{})
	return s
}

// view returns the present view.
func (s *nodeState) view() *view { return s.present.Load() }

// replace replaces the view.
func (s *nodeState) replace(v *view) {
	v.life, v.end = context.WithCancel(s.life)
	old := s.present.Swap(v)
	s.ledGroups.replaced(old != nil && old.leads(), v.leads())
	if old != nil {
		old.end()
		if old.at != nil && old.at != v.at {
			old.at.transport.CloseIdleConnections()
		}
	}
}

// ended returns why all calls end, or nil.
func (s *nodeState) ended() error { return context.Cause(s.life) }

// why returns err, the error of a request to the leader, and why this node could not take over.
func (s *nodeState) why(err error) error {
	if failed := s.couldNotLead.Load(); failed != nil {
		return fmt.Errorf("%w; and this node could not lead: %v", err, *failed) //nolint:errorlint // no error of this call
	}
	return err
}

// againFirst and againLast limit the pause between two attempts of a call or a session with the leader.
const (
	againFirst = 10 * time.Millisecond
	againLast  = 200 * time.Millisecond
)

// toLeader sends each request to the node that leads. A request to a node that no longer
// leads ends with an error.
type toLeader struct{ state *nodeState }

// errNoLeader is the error of a request while no leader is known.
var errNoLeader = errors.New("no node leads, or the leader cannot be called")

// RoundTrip is as [http.RoundTripper] says.
func (t toLeader) RoundTrip(r *http.Request) (*http.Response, error) {
	v := t.state.view()
	if v.at == nil {
		return nil, t.state.why(errNoLeader)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := v.atEnd(func() { cancel(fmt.Errorf("%w any more", errNoLeader)) })
	release := sync.OnceFunc(func() {
		stop()
		cancel(nil)
	})
	res, err := v.at.RoundTrip(r.WithContext(ctx))
	if err != nil {
		if r.Context().Err() == nil {
			t.state.timer.suspect()
		}
		release()
		return nil, t.state.why(fmt.Errorf("%s at %s (its --node-address): %w", v.leader.Name, v.at.address, err))
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		t.state.timer.suspect()
	}
	res.Body = body{res.Body, t.state.timer, ctx, release}
	return res, nil
}

// body is the body of an answer, which ends with the view of its request.
type body struct {
	io.ReadCloser
	timer   *electionTimer
	ctx     context.Context //nolint:containedctx // of the request
	release func()
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.ctx.Err() == nil {
		b.timer.suspect() // a stream of the leader has broken
	}
	return n, err
}

func (b body) Close() error {
	b.release()
	return b.ReadCloser.Close()
}
