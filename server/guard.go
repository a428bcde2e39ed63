package server

import (
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// maxHeader bounds the header of a request, and the queues that a client can
// listen for with it.
const maxHeader = 64 << 10

// guarded lets only those requests through that a client of ours makes.
func (s *Server) guarded(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case origins.Check(posted(r)) != nil:
			s.refuse(w, http.StatusForbidden, "cross_origin", "the page of another site may not use this server")
		case !s.knows(r):
			s.refuse(w, http.StatusForbidden, "host",
				fmt.Sprintf("%q is no name of this server: ask for localhost, or have the name set in its configuration", r.Host))
		case r.Header.Get(wire.Client) == "":
			s.refuse(w, http.StatusForbidden, "client", "the header "+wire.Client+" is missing, which keeps the pages of "+
				"browsers out: set it to the name of your program, as in curl -H '"+wire.Client+": curl'")
		case len(r.RequestURI) > maxHeader:
			s.refuse(w, http.StatusRequestURITooLong, "uri", "the address of the request is too long")
		case r.Method == http.MethodPost && !isJSON(r):
			s.refuse(w, http.StatusUnsupportedMediaType, "content_type", "the Content-Type of a call has to be "+wire.JSON)
		case r.Method != http.MethodPost && r.ContentLength != 0:
			w.Header().Set("Connection", "close") // rather than to wait for what it sends
			s.refuse(w, http.StatusBadRequest, "body", "only calls by POST have a body")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)
			next.ServeHTTP(w, r)
		}
	})
}

// posted is a request as if it were a POST. The rules for origins let all others
// pass, since they should change nothing; but a page that opens stream after
// stream uses up what this server has for its clients.
func posted(r *http.Request) *http.Request {
	r = r.WithContext(r.Context())
	r.Method = http.MethodPost
	return r
}

// knows reports whether a request asks for this server. By a network a browser may
// come that has been told that a stranger's name is this machine's; nobody can
// come by a socket of the file system who may not enter its directory.
func (s *Server) knows(r *http.Request) bool {
	if _, socket := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); socket {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || strings.EqualFold(host, "localhost") ||
		slices.ContainsFunc(s.cfg.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

func isJSON(r *http.Request) bool {
	typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && typ == wire.JSON
}

// refuse answers a request that is no call of a store.
func (s *Server) refuse(w http.ResponseWriter, status int, code, detail string) {
	s.hurry(http.NewResponseController(w).SetReadDeadline) // of what it has yet to send
	s.write(w, problem(&wire.Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}))
}

// refusal is the error of a body that could not be read.
func refusal(err error) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("%w: a call may have %d bytes: send less at a time", queue.ErrTooLarge, large.Limit)
	}
	return fmt.Errorf("%w: the body of the call: %w", queue.ErrInvalid, err)
}
