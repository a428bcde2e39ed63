package dbserver

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/command"
)

// Sync is when Redis has its log synced.
type Sync string

// Redis answers a write after its sync, or syncs once a second whatever was
// written: then up to a second of answered writes is lost with the power.
const (
	Always   Sync = "always"
	EverySec Sync = "everysec"
)

// NeedRedis sees to it that Redis is installed.
func NeedRedis() error { return command.Need("redis-server:redis-server") }

// Redis starts a server in an empty directory that keeps its log as sync says,
// and answers its address. stop ends it.
func Redis(dir string, sync Sync) (address string, stop func(), err error) {
	s, err := RunRedis(dir, sync)
	if err != nil {
		return "", nil, err
	}
	return strings.TrimPrefix(s.DSN, redisScheme), s.Stop, nil
}

const redisScheme = "redis://"

// RunRedis is Redis for a server that can be stopped and started again.
func RunRedis(dir string, sync Sync) (*Server, error) {
	address, port, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &Server{DSN: redisScheme + address, stop: syscall.SIGTERM, kill: syscall.SIGKILL}
	s.start = func() (*process, error) {
		return startRedis(dir, "tcp", address, "--port", port, "--bind", "127.0.0.1",
			"--appendonly", "yes", "--appendfsync", string(sync))
	}
	return s, s.Again()
}

// RedisSocket starts a server in a directory that keeps nothing, and answers the
// path of its Unix socket. stop ends it.
func RedisSocket(dir string) (address string, stop func(), err error) {
	address = filepath.Join(dir, "redis.sock")
	p, err := startRedis(dir, "unix", address, "--port", "0", "--unixsocket", address, "--appendonly", "no")
	if err != nil {
		return "", nil, err
	}
	return address, func() { p.stop(syscall.SIGTERM) }, nil
}

func startRedis(dir, network, address string, args ...string) (*process, error) {
	args = append(args, "--dir", dir, "--daemonize", "no", "--save", "")
	up := func() error { return pong(network, address) }
	return start(dir, childOf(nil, syscall.SIGTERM), up, "redis-server", args...)
}

// pong answers nil if Redis answers: while it loads its files it only listens.
func pong(network, address string) error {
	conn, err := net.DialTimeout(network, address, time.Second) //nolint:noctx // it has its limit
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, len("+PONG\r\n")))
	return err
}
