package dbserver

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/command"
)

// bouncerConfig makes each transaction use another connection than the one before, so that
// a program that depends on the state of a session fails.
const bouncerConfig = `[databases]
postgres = host=%s port=%s dbname=postgres user=bench
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_round_robin = 1
max_client_conn = 200
`

// Bouncer starts PgBouncer in the transaction mode before a server, with its files in a
// directory that the account of the server can enter. stop ends it.
func (p *Postgres) Bouncer(dir string, s *Server) (dsn string, stop func(), err error) {
	program, err := bouncerProgram()
	if err != nil {
		return "", nil, err
	}
	u, err := url.Parse(s.DSN)
	if err != nil {
		return "", nil, err
	}
	address, port, err := freeAddress()
	if err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(bouncerConfig, u.Hostname(), u.Port(), port)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // another account reads it
		return "", nil, err
	}
	b, err := start(dir, childOf(p.user, syscall.SIGQUIT), func() error { return listens(address) }, program, path)
	if err != nil {
		return "", nil, err
	}
	u.Host = address
	return u.String(), func() { b.stop(syscall.SIGQUIT) }, nil // at once; SIGINT waits for clients
}

// listens returns nil if something listens at an address.
func listens(address string) error {
	conn, err := net.DialTimeout("tcp", address, time.Second) //nolint:noctx // it has its limit
	if err != nil {
		return err
	}
	return conn.Close()
}

// bouncerProgram sees to it that PgBouncer is installed. Debian keeps it out of the path of
// most users.
func bouncerProgram() (string, error) {
	const name, debian = "pgbouncer", "/usr/sbin/pgbouncer"
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	if _, err := os.Stat(debian); err == nil {
		return debian, nil
	}
	if err := command.Need(name + ":" + name); err != nil {
		return "", err
	}
	return exec.LookPath(name)
}
