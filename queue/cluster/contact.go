package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// The paths at which a node answers others, besides those of the calls of a store.
const (
	rosterPath = "/nodes" // at the leader: a POST or DELETE of a member, or a GET with a host
	hostQuery  = "host"
	knownField = "Stint-Nodes" // of its answers: the number of nodes
	nodePath   = "/node"       // before the paths of [Config.Handler]
	leadPath   = "/lead"       // at a node of a group: a POST lets it lead; see [ledGroups]
	leadsQuery = "leads"
)

// contact is how the other nodes reach a node. As text it is a URL with the token as the
// user and the hash of the certificate as the fragment.
type contact struct {
	address string // host:port
	token   string
	pin     []byte          // SHA-256 of the certificate
	cert    tls.Certificate // of this node; empty for another one
}

// newContact returns a contact of this process, with a new token and a new certificate. The
// certificate names nothing and never ends: other nodes know it by its hash.
func newContact(address string) (c contact, err error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // "no end" of RFC 5280
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return c, err
	}
	pin := sha256.Sum256(der)
	return contact{
		address: address, token: rand.Text(), pin: pin[:],
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}, nil
}

// String is the contact for the database. It has the token.
func (c *contact) String() string {
	u := url.URL{Scheme: "https", User: url.User(c.token), Host: c.address, Fragment: hex.EncodeToString(c.pin)}
	return u.String()
}

// parseContact parses what another node has stored. Its errors do not show the token.
func parseContact(text string) (c contact, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.User == nil || u.Port() == "" {
		return c, errors.New("its address for other nodes is missing")
	}
	c = contact{address: u.Host, token: u.User.Username()}
	if c.pin, err = hex.DecodeString(u.Fragment); err != nil || len(c.pin) != sha256.Size {
		return c, errors.New("the hash of its certificate is missing")
	}
	return c, nil
}

// host is the host of the address.
func (c *contact) host() string {
	host, _, _ := net.SplitHostPort(c.address)
	return host
}

// tls is the configuration of the server of this node.
func (c *contact) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.cert}, NextProtos: []string{"h2", "http/1.1"},
	}
}

// target is a node that is called.
type target struct {
	contact
	transport transport
}

// transport is an [http.Transport].
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// network connects nodes without listeners.
type network interface {
	// Serve makes a handler answer at an address.
	Serve(address string, h http.Handler)
	// Connect returns the connections of the node of a name to an address.
	Connect(from, address string) transport
}

// silentListener is the listener of a node on a network.
type silentListener struct{}

func (silentListener) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (silentListener) Close() error              { return nil }
func (silentListener) Addr() net.Addr            { return &net.TCPAddr{} }

// dialer connects a node to others.
type dialer struct {
	name    string  // of the node
	network network // in place of TCP and TLS; nil is none
}

// target returns the node of a contact, with its own connections. address is that to connect to;
// "" is that of the contact.
func (d dialer) target(c contact, address string) *target {
	if d.network != nil {
		return &target{c, d.network.Connect(d.name, c.address)}
	}
	return c.target(address)
}

// target is [dialer.target] over TLS.
func (c contact) target(dial string) *target {
	const connections = 128
	verify := func(s tls.ConnectionState) error {
		if got := sha256.Sum256(s.PeerCertificates[0].Raw); !bytes.Equal(got[:], c.pin) {
			return errors.New("its certificate is not the one in the database: another program listens at the address")
		}
		return nil
	}
	return &target{c, &http.Transport{
		// The certificate is known by its hash.
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, VerifyConnection: verify, //nolint:gosec // see above
		},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{Timeout: connectWithin}).DialContext(ctx, network, cmp.Or(dial, address))
		},
		TLSHandshakeTimeout: connectWithin, ForceAttemptHTTP2: true, HTTP2: pings(),
		MaxIdleConns: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
		DisableCompression: true,
	}}
}

// RoundTrip sends a request to the node, with its token, whatever the host of its URL.
func (t *target) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = "https", t.address, t.address
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.transport.RoundTrip(r)
}

// connectWithin is how long a connection may take, and then its handshake. A host that is
// gone does not answer.
const connectWithin = 3 * time.Second

// pings finds connections that are open, and over which nothing passes: they end after 4 s,
// and so do the calls over them, which are then made again. A deadline for the answers
// instead would end calls that take long because the database does. The nodes speak HTTP/2
// because HTTP/1.1 has no such sign of life.
func pings() *http.HTTP2Config {
	const silent, answer, write = 2 * time.Second, 2 * time.Second, 4 * time.Second
	return &http.HTTP2Config{SendPingTimeout: silent, PingTimeout: answer, WriteByteTimeout: write}
}

// localAddress returns the IP address of the interface by which this host reaches a
// host:port. It sends nothing. Without a route, it is the loopback address.
func localAddress(ctx context.Context, route string) (string, error) {
	if route == "" {
		return "127.0.0.1", nil
	}
	c, err := new(net.Dialer).DialContext(ctx, "udp", route)
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return "", fmt.Errorf("the host %s, usually that of the database, is not known: %w; correct its name, or wait "+
			"for DNS", name.Name, err)
	}
	if err != nil {
		return "", fmt.Errorf("this host finds no way to %s: %w; set Listen (--node-listen), or correct the route",
			route, err)
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	return host, err
}

// reachable returns the host:port that names a listener for others: as configured, but for
// the port if that is 0. The caller has checked that as is a host and a port.
func reachable(l net.Addr, as string) (string, error) {
	host, port, err := net.SplitHostPort(as)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return "", fmt.Errorf("%w: other nodes cannot reach %q: set Address (--node-address) to one that they reach",
			queue.ErrInvalid, as)
	}
	if port == "0" {
		if _, port, err = net.SplitHostPort(l.String()); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, port), nil
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	p := wire.ProblemOf(err)
	w.Header().Set("Content-Type", wire.ProblemJSON)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller has gone if it fails
}
