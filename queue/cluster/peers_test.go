package cluster_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/storetest"
)

// greeter answers with a name and the path and query of the request.
func greeter(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, name, " ", r.URL.RequestURI())
	})
}

// TestC11_NodesFindEachOther: every node learns from the leader which nodes there are, and
// reaches each of them, also after the leader has changed. The nodes of a host are found by
// the name of one that is gone.
func TestC11_NodesFindEachOther(t *testing.T) {
	opener := kinds[1].opener(t, storetest.Config{})
	names := []string{"a:1", "a:2", "b:3"}
	begun := time.Now()
	nodes := make(map[string]*cluster.Node)
	for _, name := range names {
		nodes[name] = open(t, opener, cluster.Config{Name: name, Handler: greeter(name)})
	}
	check := func(names []string) {
		t.Helper()
		for _, at := range names {
			for _, name := range names {
				if got := call(t, nodes[at], name, "/path?q=1"); got != name+" /path?q=1" {
					t.Errorf("%s reaches %q at %s", at, got, name)
				}
			}
			stats, err := nodes[at].Stats(t.Context(), time.Now())
			if err != nil || !slices.EqualFunc(stats.Nodes, names, func(n queue.Node, name string) bool {
				return n.Name == name && n.Address != "" && n.Seen.After(begun)
			}) {
				t.Errorf("at %s the nodes are %v, %v; want %v", at, stats.Nodes, err, names)
			}
		}
	}
	check(names)
	if got := peers(t, nodes["b:3"], "a:9"); !slices.Equal(got, names[:2]) {
		t.Errorf("the nodes of host a are %v", got)
	}
	if got := peers(t, nodes["b:3"], "a:2"); !slices.Equal(got, []string{"a:2", "a:1"}) {
		t.Errorf("the nodes of host a are %v, with a:2 first", got)
	}
	closes(t, nodes["a:1"])
	check(names[1:])
}

// TestC11_NodesThatCloseStayAway: a call by which a node makes itself known, and which the leader
// handles only after the node has closed, does not bring it back.
func TestC11_NodesThatCloseStayAway(t *testing.T) {
	opener := kinds[1].opener(t, storetest.Config{})
	called, gone, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
	around := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/nodes" || r.Method == http.MethodGet {
				h.ServeHTTP(w, r)
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			if r.Method == http.MethodDelete {
				h.ServeHTTP(w, r)
				close(gone)
				return
			}
			defer close(late)
			close(called)
			<-gone
			h.ServeHTTP(w, r)
		})
	}
	leader, err := cluster.OpenAround(t.Context(), opener, cluster.Config{Name: "a:1"}, around)
	if err != nil {
		t.Fatal(err)
	}
	defer closes(t, leader)
	follower := open(t, opener, cluster.Config{Name: "b:2"})
	<-called
	closes(t, follower)
	<-late
	if got := peers(t, leader, "b:2"); len(got) > 0 {
		t.Errorf("the leader knows %v after the end of the node", got)
	}
}

// TestC11_NamesInContainers: processes of two containers with the same host name and process number have
// names of their own, and the host is known by them.
func TestC11_NamesInContainers(t *testing.T) {
	for _, namespace := range []string{"", "pid:[4026531836]"} {
		if got := cluster.NameIn(namespace, "web1", 4711); got != "web1:4711" {
			t.Errorf("in the namespace %q of a host, the name is %s", namespace, got)
		}
	}
	names := []string{cluster.NameIn("pid:[4026532193]", "web1", 1), cluster.NameIn("pid:[4026532194]", "web1", 1)}
	slices.Sort(names)
	if names[0] == names[1] {
		t.Fatalf("two processes have the name %s", names[0])
	}
	opener := kinds[1].opener(t, storetest.Config{})
	nodes := make(map[string]*cluster.Node)
	for _, name := range names {
		nodes[name] = open(t, opener, cluster.Config{Name: name, Handler: greeter(name)})
	}
	for _, name := range names {
		if got := call(t, nodes[names[0]], name, "/"); got != name+" /" {
			t.Errorf("%s answers %q", name, got)
		}
	}
	if got := peers(t, nodes[names[0]], "web1:9"); !slices.Equal(got, names) {
		t.Errorf("the nodes of the host are %v, want %v", got, names)
	}
}

// peers returns the names of the nodes of a host.
func peers(t *testing.T, n *cluster.Node, name string) (names []string) {
	t.Helper()
	found, err := n.Peers(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		names = append(names, p.Name)
	}
	return names
}

// call sends a request to a node as soon as the leader knows it.
func call(t *testing.T, from *cluster.Node, name, path string) string {
	t.Helper()
	for ctx := t.Context(); ; {
		found, err := from.Peers(ctx, name)
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		if err != nil || len(found) == 0 || found[0].Name != name {
			continue
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://node"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := found[0].RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// TestC11_PeersGetTheRequestAsItWasSent: a path reaches the handler of a node with the escapes that it
// had, and a URL without a path as "/".
func TestC11_PeersGetTheRequestAsItWasSent(t *testing.T) {
	n := open(t, kinds[1].opener(t, storetest.Config{}), cluster.Config{Name: "a:1", Handler: greeter("a:1")})
	for path, want := range map[string]string{
		"/a%2Fb/c%20d?q=%2F": "/a%2Fb/c%20d?q=%2F", "": "/", "/": "/", "/node/": "/node/",
	} {
		if got := call(t, n, "a:1", path); got != "a:1 "+want {
			t.Errorf("a request of %q has the URL %q at the handler, want %q", path, got, want)
		}
	}
}
