package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/stintgo/stint/internal/peer"
	"github.com/stintgo/stint/internal/wire"
)

// maxHeader bounds the header of a request, and the queues that a client can
// listen for with it.
const maxHeader = 64 << 10

// guarded lets only those requests through that a client of ours makes.
func (s *Server) guarded(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		foreign, _ := r.Context().Value(foreignPeer{}).(error)
		switch {
		case foreign != nil:
			s.refuse(w, http.StatusForbidden, "user", "this server answers processes of its own user and of root: "+
				foreign.Error()+"; use a server of your own")
		case origins.Check(posted(r)) != nil:
			s.refuse(w, http.StatusForbidden, "cross_origin", "the page of another site may not use this server")
		case !s.knows(r):
			s.refuse(w, http.StatusForbidden, "host",
				fmt.Sprintf("%q is no name of this server: ask for localhost, or have the name set in its configuration", r.Host))
		case r.Header.Get(wire.Client) == "":
			s.refuse(w, http.StatusForbidden, "client", "the header "+wire.Client+" is missing, which keeps the pages of "+
				"browsers out: set it to the name of your program, as in curl -H '"+wire.Client+": curl'")
		case !s.authorized(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			s.refuseToken(w, r.Header.Get("Authorization") != "")
		case len(r.RequestURI) > maxHeader:
			s.refuse(w, http.StatusRequestURITooLong, "uri", "the address of the request is too long")
		case r.Method == http.MethodPost && !isJSON(r):
			s.refuse(w, http.StatusUnsupportedMediaType, "content_type", "the Content-Type of a call has to be "+wire.JSON)
		case r.Method != http.MethodPost && r.ContentLength != 0:
			w.Header().Set("Connection", "close") // rather than to wait for what it sends
			s.refuse(w, http.StatusBadRequest, "body", "only calls by POST have a body")
		default:
			if s.limit(w, r) {
				next.ServeHTTP(w, r)
			}
		}
	})
}

// foreignPeer is where the context of a connection has the error of [peer.Check].
type foreignPeer struct{}

// withPeer notes whether a connection comes from a user that may not use the server.
func (s *Server) withPeer(ctx context.Context, c net.Conn) context.Context {
	if err := peer.Check(c, s.cfg.Users); err != nil {
		return context.WithValue(ctx, foreignPeer{}, err)
	}
	return ctx
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
	if bySocket(r) {
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

// bySocket reports whether a request came by a Unix socket.
func bySocket(r *http.Request) bool {
	_, socket := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	return socket
}

// authorized reports whether a request has the token, if it needs one. How long the
// comparison takes says nothing about the token: hashes of equal length are compared.
func (s *Server) authorized(r *http.Request) bool {
	if s.cfg.Token == "" || bySocket(r) {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.Token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// refuseToken answers a call that needs the token and has none, or has another one.
func (s *Server) refuseToken(w http.ResponseWriter, hasOne bool) {
	const where = "the token of stint serve is in the file token of its directory (--dir), " +
		"which --token-file or STINT_TOKEN_FILE names for the commands of stint"
	if hasOne {
		s.refuse(w, http.StatusUnauthorized, wire.WrongToken, "the header Authorization is not Bearer and the token of this "+
			"server; "+where)
		return
	}
	s.refuse(w, http.StatusUnauthorized, wire.NoToken, "calls to this address need the server's token in the header "+
		"Authorization: Bearer TOKEN; "+where)
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
