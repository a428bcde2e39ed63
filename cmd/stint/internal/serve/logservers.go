package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/server"
)

// logServers finds the servers that keep the logs of tasks: of servers that share a store, the
// one that has run a task keeps its log.
type logServers struct {
	store queue.Store
	node  *cluster.Node
	logs  string // the directory of this server's logs
}

// nodeIn returns the node that knows the other servers of a store, nil if the store is not
// shared. Every server has a node of the default group.
func nodeIn(store queue.Store) *cluster.Node {
	switch s := store.(type) {
	case *cluster.Node:
		return s
	case *cluster.Groups:
		return s.Node("")
	}
	return nil
}

// workerOf returns the name of a worker of a node that no other start of a process has. The steps of a
// task name the node by it.
func workerOf(node string) string {
	const random = 8 // characters
	return node + "-" + strings.ToLower(rand.Text()[:random])
}

// nodeOf returns the node and the host of a worker.
func nodeOf(worker string) (node, host string) {
	node = worker
	if at := strings.LastIndexByte(worker, '-'); at >= 0 {
		node = worker[:at]
	}
	host, _, _ = strings.Cut(node, ":")
	return node, host
}

// at is [server.Config.LogAt].
func (l logServers) at(ctx context.Context, id queue.ID) (http.RoundTripper, error) {
	tasks, err := l.store.Find(ctx, queue.Filter{IDs: []queue.ID{id}}, queue.Page{Limit: 1})
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	worker := lastWorker(&tasks[0])
	node, host := nodeOf(worker)
	if worker == "" || node == l.node.Name() {
		return nil, nil
	}
	peers, err := l.node.Peers(ctx, node)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(peers, func(p *cluster.Peer) bool { return p.Name == node }) && l.keeps(id, worker) {
		return nil, nil
	}
	return &logRoute{id: id, node: node, host: host, peers: peers}, nil
}

// keeps reports whether this server has a log of a task that a worker on this host has run: an
// earlier server with this directory, which had another name.
func (l logServers) keeps(id queue.ID, worker string) bool {
	host, err := os.Hostname()
	if err != nil || !strings.HasPrefix(worker, host+":") && !strings.HasPrefix(worker, host+"-") {
		return false
	}
	_, err = os.Stat(filepath.Join(l.logs, server.LogName(id)))
	return err == nil
}

// lastWorker returns the worker of the last attempt of a task, or "".
func lastWorker(t *queue.Task) string {
	for _, step := range slices.Backward(t.Steps) {
		if step.On == queue.OnClaim {
			return step.By
		}
	}
	return ""
}

// logRoute is the route to the log of a task that another server keeps. A server that was started
// again has another name, and still has the logs of its directory, so if the node that has run
// the task does not answer, the others of its host are asked.
type logRoute struct {
	id         queue.ID
	node, host string          // that has run the task
	peers      []*cluster.Peer // of the host; the node is the first if the leader knows it
}

// RoundTrip is as [http.RoundTripper] says. Its error names the node.
func (l *logRoute) RoundTrip(r *http.Request) (*http.Response, error) {
	var errs []error
	for _, p := range l.peers {
		out := r.Clone(r.Context())
		exact := p.Name == l.node
		if !exact { // without a size, a server that does not have the log answers at once
			out.URL.RawQuery = url.Values{wire.QueryID: {l.id.String()}}.Encode()
		}
		res, err := p.RoundTrip(out)
		switch {
		case r.Context().Err() != nil:
			return res, err
		case err != nil:
			errs = append(errs, fmt.Errorf("%s at %s: %w", p.Name, p.Address, err))
		case exact || res.StatusCode != http.StatusNotFound:
			return res, nil
		default:
			_ = res.Body.Close() // another server has the log, if any
		}
	}
	return nil, l.gone(errors.Join(errs...))
}

// gone is the error of a log whose server is gone.
func (l *logRoute) gone(why error) error {
	err := fmt.Errorf(`%w: the log of task %s is at %s, which ran it and does not answer: start "stint serve" on host %s `+
		`again with the same --dir, or read %s in its directory`,
		queue.ErrUnavailable, l.id, l.node, l.host, logsName+"/"+server.LogName(l.id))
	if why != nil {
		err = fmt.Errorf("%w (%w)", err, why)
	}
	return err
}

// lateHandler is the handler of a node. It is set when the server has been made, which
// needs the open node; before that, it answers 503.
type lateHandler struct {
	to atomic.Pointer[http.HandlerFunc]
}

func (h *lateHandler) set(to http.HandlerFunc) { h.to.Store(&to) }

func (h *lateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if to := h.to.Load(); to != nil {
		(*to)(w, r)
		return
	}
	http.Error(w, "the server is starting", http.StatusServiceUnavailable)
}
