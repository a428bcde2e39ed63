// Package freeport finds TCP ports for servers that tests start, and start again.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The ports from first on. The system gives ports from 32768 (Linux, ip_local_port_range in
// tcp(7)) or 49152 (RFC 6335) on to connections: one of those, which the kernel chooses for
// port 0, is taken by any connection while its server does not run, and for as long as that
// connection lasts.
const (
	first = 20000
	ports = 12000
	tries = 100
)

// Address returns an address of the loopback interface on which nothing listens. Until the
// caller listens there, another caller may be given the same one, but no connection is.
func Address() (string, error) {
	var errs []error
	for range tries {
		address := fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(ports)) //nolint:gosec // the port is not secret
		l, err := net.Listen("tcp", address)                           //nolint:noctx // it does not wait
		if err == nil {
			return address, l.Close()
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no port from %d to %d is free: %w", first, first+ports-1, errors.Join(errs...))
}
