package freeport_test

import (
	"net"
	"testing"

	"github.com/stintgo/stint/internal/freeport"
)

// Addresses can be listened on, and are not those of the kernel's choice.
func TestAddress(t *testing.T) {
	for range 20 {
		address, err := freeport.Address()
		if err != nil {
			t.Fatal(err)
		}
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if port := l.Addr().(*net.TCPAddr).Port; port >= 32768 {
			t.Errorf("port %d may be that of a connection", port)
		}
	}
}
