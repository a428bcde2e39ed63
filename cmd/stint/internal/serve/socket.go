package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
)

// listen opens the socket, and the TCP address if there is one. The caller must hold the
// lock of the store, so an existing socket is stale.
func listen(ctx context.Context, cfg *Config) (listeners []net.Listener, addresses []string, err error) {
	err = errors.Join(checkLoopback("--listen", cfg.Listen), checkLoopback("--uploads-listen", cfg.Uploads.Listen))
	if err != nil {
		return nil, nil, err
	}
	path, err := Socket(cfg.Dir)
	if err != nil {
		return nil, nil, err
	}
	socket, err := listenSocket(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	listeners, addresses = append(listeners, socket), append(addresses, "unix:"+filepath.Join(cfg.Dir, SocketName))
	if cfg.Listen == "" {
		return listeners, addresses, nil
	}
	tcp, err := listenTCP(ctx, cfg)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w; choose another address with --listen", err), socket.Close())
	}
	return append(listeners, tcp), append(addresses, "http://"+tcp.Addr().String()), nil
}

// listenTCP listens at the address of cfg. The listener of a killed server can outlive
// the lock of its store for a moment: a command that the server was starting has a copy
// of it from fork until exec closes it. So listenTCP retries an address in use for as
// long as a locked directory.
func listenTCP(ctx context.Context, cfg *Config) (l net.Listener, err error) {
	err = retryWhile(ctx, cfg.Patience, syscall.EADDRINUSE, func() error {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen)
		return err
	})
	return l, err
}

// listenSocket opens a socket that only its owner may use, even in a directory that other
// users may enter.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s is not a socket: move it elsewhere", path)
	default: // left by a killed server
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	const others = 0o177
	had := syscall.Umask(others)
	defer syscall.Umask(had)
	return new(net.ListenConfig).Listen(ctx, "unix", path)
}

// checkLoopback refuses addresses that other machines can reach.
func checkLoopback(flag, address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s %s: %w; give an address and a port, as in 127.0.0.1:7117", flag, address, err)
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s %s: other machines could reach it, and its token is sent in clear text; "+
			"use 127.0.0.1, and a tunnel (ssh -L) or a proxy with TLS from elsewhere", flag, address)
	}
	return nil
}

// socketMax is the limit for the path of a socket, in bytes.
const socketMax = 103 // of the system with the lowest limit

// Socket returns a path of the socket in a directory that is short enough for the system.
func Socket(dir string) (string, error) {
	path := filepath.Join(dir, SocketName)
	if len(path) <= socketMax {
		return path, nil
	}
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && len(rel) <= socketMax {
			return rel, nil
		}
	}
	return around(dir, path)
}

func tooLong(path string) error {
	return fmt.Errorf("the path of a socket has at most %d bytes, and %s has %d: use a directory with a shorter name",
		socketMax, path, len(path))
}
