package server_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// TestC6_AllowedClients: the server refuses the requests that a browser can be made to
// send.
func TestC6_AllowedClients(t *testing.T) {
	s := server.New(memstore.New(memstore.Config{}), server.Config{MaxBody: 1000, Hosts: []string{"queue.example"}})
	defer s.Close()
	with := func(r *http.Request, change func(*http.Request)) *http.Request {
		change(r)
		return r
	}
	post := func(change func(*http.Request)) *http.Request {
		return with(request("POST", wire.Claim, claim), change)
	}
	host := func(name string) *http.Request { return post(func(r *http.Request) { r.Host = name }) }
	header := func(name, value string) *http.Request {
		return post(func(r *http.Request) { r.Header.Set(name, value) })
	}
	tests := []struct {
		name string
		r    *http.Request
		want int
		code string
	}{
		{"a call", post(func(*http.Request) {}), 200, ""},
		{"a question", request("GET", wire.Stats, ""), 200, ""},
		{"by address", host("127.0.0.1:7117"), 200, ""},
		{"by address without port", host("127.9.9.9"), 200, ""},
		{"by address of the other kind", host("[::1]:7117"), 200, ""},
		{"by a name that was set", host("Queue.Example:80"), 200, ""},
		{"by a stranger's name", host("evil.example:7117"), 403, "host"},
		{"by a name that begins well", host("localhost.evil.example"), 403, "host"},
		{"by another machine's address", host("10.0.0.1:7117"), 403, "host"},
		{"by no name", host(""), 403, "host"},
		{"of another site's page", header("Sec-Fetch-Site", "cross-site"), 403, "cross_origin"},
		{"of another origin", header("Origin", "http://evil.example"), 403, "cross_origin"},
		{"to ask, of another site's page", with(request("GET", wire.Stats, ""), func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}), 403, "cross_origin"},
		{"to listen, of a neighbour's page", with(request("GET", wire.Watch, ""), func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "same-site")
		}), 403, "cross_origin"},
		{"to listen, of another origin", with(request("GET", wire.Ready+"?queue=a", ""), func(r *http.Request) {
			r.Header.Set("Origin", "http://evil.example")
		}), 403, "cross_origin"},
		{"to ask, typed into a browser", with(request("GET", wire.Stats, ""), func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "none")
		}), 200, ""},
		{"of no program", header(wire.Client, ""), 403, "client"},
		{"of a form", header("Content-Type", "text/plain"), 415, "content_type"},
		{"of no type", header("Content-Type", ""), 415, "content_type"},
		{"a long key", header(wire.Key, strings.Repeat("k", 65)), 400, "invalid"},
		{"an unknown path", request("GET", "/", ""), 404, "unknown_call"},
		{"another version", request("POST", "/v1/claim", claim), 404, "unknown_call"},
		{"another method", request("PUT", wire.Claim, ""), 405, "method"},
		{"a call without a body", request("GET", wire.Claim, ""), 405, "method"},
		{"a question with a body", request("GET", wire.Stats, "{}"), 400, "body"},
		{"a long address", request("GET", wire.Stats+"?"+strings.Repeat("q", 65<<10), ""), 414, "uri"},
		{"many queues", request("GET", wire.Ready+"?"+strings.Repeat("queue=a&", wire.QueuesMost+1), ""), 400, "invalid"},
		{"many tasks", request("POST", wire.Claim, `{"worker":"w","kinds":["k"],"max":1001,"lease_ns":1}`), 400, "invalid"},
		{"a large page", request("POST", wire.Find, `{"page":{"limit":1001}}`), 400, "invalid"},
		{"no ID", request("GET", wire.Explain, ""), 400, "invalid"},
		{"no body", request("POST", wire.Claim, ""), 400, "invalid"},
		{"half a body", request("POST", wire.Claim, claim[:20]), 400, "invalid"},
		{"two bodies", request("POST", wire.Claim, claim+claim), 400, "invalid"},
		{"another body", request("POST", wire.Claim, "[]"), 400, "invalid"},
		{"a field too many", request("POST", wire.Claim, `{"wait":true,`+claim[1:]), 400, "invalid"},
		{"a state that is none", request("POST", wire.Find, `{"filter":{"states":["asleep"]}}`), 400, "invalid"},
		{"a large body", request("POST", wire.Claim, `{"worker":"`+strings.Repeat("w", 1000)+`"}`), 413, "too_large"},
	}
	for _, test := range tests {
		if status, code := answered(t, s, test.r); status != test.want || code != test.code {
			t.Errorf("a request %s is answered %d %s, want %d %s", test.name, status, code, test.want, test.code)
		}
	}
}

// TestC6_PagesCannotAsk: every route refuses, before anything is done, what a page can
// make a browser send, also without the headers by which newer browsers identify the
// page, and the refusal says which header a program must add. A page that adds it needs a
// preflight, which the server does not allow.
func TestC6_PagesCannotAsk(t *testing.T) {
	s := server.New(memstore.New(memstore.Config{}), server.Config{Hosts: []string{"queue.example"}})
	defer s.Close()
	for path, method := range map[string]string{
		wire.Submit: "POST", wire.Claim: "POST", wire.Settle: "POST", wire.Heartbeat: "POST", wire.Command: "POST",
		wire.Find: "POST", wire.Configure: "POST", wire.Pause: "POST", wire.Reschedule: "POST", wire.Maintain: "POST",
		wire.Jobs:    "POST",
		wire.Explain: "GET", wire.Stats: "GET", wire.Settings: "GET", wire.Schedules: "GET", wire.Log: "GET",
		wire.Ready: "GET", wire.Watch: "GET", "/": "GET", "/v3/of-a-later-version": "POST",
	} {
		for _, host := range []string{"localhost:7117", "127.0.0.1:7117", "[::1]:7117", "queue.example"} {
			r := request(method, path, "")
			ctx, leave := context.WithCancel(r.Context())
			leave() // end a stream that was wrongly admitted
			r = r.WithContext(ctx)
			r.Host = host
			r.Header.Del(wire.Client)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if text := w.Body.String(); w.Code != http.StatusForbidden || !strings.Contains(text, `"code":"client"`) ||
				!strings.Contains(text, "curl -H 'Stint-Client: curl'") {
				t.Errorf("%s %s of a page is answered %d %s", method, path, w.Code, text)
			}
		}
		r := request(http.MethodOptions, path, "")
		r.Header.Del(wire.Client)
		r.Header.Set("Origin", "http://evil.example")
		r.Header.Set("Access-Control-Request-Method", method)
		r.Header.Set("Access-Control-Request-Headers", wire.Client)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("a page may send %s %s: %s", method, path, w.Header())
			}
		}
		if w.Code != http.StatusForbidden {
			t.Errorf("whether a page may send %s %s is answered %d", method, path, w.Code)
		}
	}
}

// strange is the address of a listener that is neither TCP nor a Unix socket, such as one
// that wraps TCP for tunnels.
type strange struct{ net.Addr }

// TestC6_SocketsHaveNoNames: any host is accepted by a Unix socket, and by no other kind
// of listener.
func TestC6_SocketsHaveNoNames(t *testing.T) {
	s := server.New(memstore.New(memstore.Config{}), server.Config{})
	for _, test := range []struct {
		local net.Addr
		want  int
	}{
		{&net.UnixAddr{Name: "s", Net: "unix"}, http.StatusOK},
		{&net.TCPAddr{}, http.StatusForbidden},
		{strange{&net.TCPAddr{}}, http.StatusForbidden},
		{nil, http.StatusForbidden},
	} {
		r := request("GET", wire.Stats, "")
		r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, test.local))
		r.Host = "whatever"
		if status, code := answered(t, s, r); status != test.want {
			t.Errorf("by %T it is answered %d %s, want %d", test.local, status, code, test.want)
		}
	}
}
