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

// maxHeader is the largest header of a request, in bytes. It also bounds how many
// queues a client can name in one URL.
const maxHeader = 64 << 10

// accessControl admits requests: by their host, origin, token and user. It is immutable.
type accessControl struct {
	hosts []string
	token string
	users []int
	to    *responder
}

// admitted passes a request on to next only if it comes from an allowed client.
func (a *accessControl) admitted(next http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		foreign, _ := r.Context().Value(foreignPeer{}).(error)
		switch {
		case foreign != nil:
			a.to.refuse(w, http.StatusForbidden, "user", "this server answers processes of its own user, of root and of the "+
				"configured users: "+foreign.Error()+"; start a server of your own")
		case origins.Check(posted(r)) != nil:
			a.to.refuse(w, http.StatusForbidden, "cross_origin", "pages of other sites may not call this server")
		case !a.knows(r):
			a.to.refuse(w, http.StatusForbidden, "host",
				fmt.Sprintf("%q is not a name of this server: use localhost, or configure the name", r.Host))
		case r.Header.Get(wire.Client) == "":
			a.to.refuse(w, http.StatusForbidden, "client", "the header "+wire.Client+" is missing, which keeps web pages in "+
				"browsers out: set it to the name of your program, as in curl -H '"+wire.Client+": curl'")
		case !a.authorized(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			a.refuseToken(w, r.Header.Get("Authorization") != "")
		case len(r.RequestURI) > maxHeader:
			a.to.refuse(w, http.StatusRequestURITooLong, "uri", "the URL of the request is too long")
		case r.Method == http.MethodPost && !hasType(r):
			a.to.refuse(w, http.StatusUnsupportedMediaType, wire.UnknownType,
				"the Content-Type of a call in JSON must be "+wire.JSON)
		case r.Method != http.MethodPost && r.ContentLength != 0:
			w.Header().Set("Connection", "close") // do not wait for the body
			a.to.refuse(w, http.StatusBadRequest, "body", "only calls by POST have a body")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// foreignPeer is the context key of a connection for the error of [peer.Check].
type foreignPeer struct{}

// withPeer stores in the context of a connection whether its user may not use the
// server.
func (a *accessControl) withPeer(ctx context.Context, c net.Conn) context.Context {
	if err := peer.Check(c, a.users); err != nil {
		return context.WithValue(ctx, foreignPeer{}, err)
	}
	return ctx
}

// posted returns r as a POST. The rules for cross-origin requests pass all other
// methods, which should change nothing; but a page that opens stream after stream would
// use up [Config.MaxStreams].
func posted(r *http.Request) *http.Request {
	r = r.WithContext(r.Context())
	r.Method = http.MethodPost
	return r
}

// knows reports whether a request names this server as its host. A browser whose DNS
// maps a foreign name to this machine (DNS rebinding) reaches a TCP address, but not a
// Unix socket, which the modes of its directory protect.
func (a *accessControl) knows(r *http.Request) bool {
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
		slices.ContainsFunc(a.hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// bySocket reports whether a request came by a Unix socket.
func bySocket(r *http.Request) bool {
	_, socket := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	return socket
}

// authorized reports whether a request has the token, if it needs one. It compares
// hashes of equal length in constant time, so that its duration reveals nothing about the
// token.
func (a *accessControl) authorized(r *http.Request) bool {
	if a.token == "" || bySocket(r) {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(a.token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// refuseToken answers a call that needs the token and has none, or a wrong one.
func (a *accessControl) refuseToken(w http.ResponseWriter, hasOne bool) {
	const where = "the token of stint serve is in the file token of its directory (--dir), " +
		"which --token-file or STINT_TOKEN_FILE names for the commands of stint"
	if hasOne {
		a.to.refuse(w, http.StatusUnauthorized, wire.WrongToken, "the header Authorization is not Bearer and the token of "+
			"this server; "+where)
		return
	}
	a.to.refuse(w, http.StatusUnauthorized, wire.NoToken, "calls to this address need the server's token in the header "+
		"Authorization: Bearer TOKEN; "+where)
}

// hasType reports whether the body of a request has a type that no form of a web page has.
func hasType(r *http.Request) bool {
	typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (typ == wire.JSON || typ == wire.Packed)
}
