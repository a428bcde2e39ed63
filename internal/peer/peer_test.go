package peer_test

import (
	"crypto/tls"
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stintgo/stint/internal/peer"
)

func TestC6_TrustedUsers(t *testing.T) {
	for _, test := range []struct {
		uid, self int
		users     []int
		want      bool
	}{
		{uid: 1000, self: 1000, want: true},
		{uid: 0, self: 1000, want: true},
		{uid: 0, self: 0, want: true},
		{uid: 1000, self: 0},
		{uid: 1001, self: 1000},
		{uid: -1, self: 1000},
		{uid: 1001, self: 1000, users: []int{1001}, want: true},
		{uid: 1002, self: 1000, users: []int{1001}},
	} {
		if got := peer.Trusted(test.uid, test.self, test.users); got != test.want {
			t.Errorf("user %d trusts %d (also %v): %t", test.self, test.uid, test.users, got)
		}
	}
}

// opaque is a connection whose descriptor is not accessible.
type opaque struct{ net.Conn }

// TestC6_PeersOfThisProcess: both ends of a socket belong to this user, and a TCP
// connection has no user.
func TestC6_PeersOfThisProcess(t *testing.T) {
	for network, address := range map[string]string{
		"unix": filepath.Join(t.TempDir(), "s"), "tcp": "127.0.0.1:0",
	} {
		l, err := new(net.ListenConfig).Listen(t.Context(), network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		near, err := new(net.Dialer).DialContext(t.Context(), network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		for _, end := range []net.Conn{near, far, tls.Client(near, nil)} {
			if err := peer.Check(end, nil); err != nil {
				t.Errorf("%s: %v", network, err)
			}
		}
		if err := peer.Check(opaque{near}, nil); runtime.GOOS == "linux" && (err == nil) != (network == "tcp") {
			t.Errorf("%s, with a connection that hides its descriptor: %v", network, err)
		}
	}
}
