package dbserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/stintgo/stint/internal/command"
)

// Postgres is a database that was made once, to be copied for each server that
// is started: making one takes far longer.
type Postgres struct {
	programs string // the directory of initdb and postgres
	original string
	user     *syscall.Credential // the account that runs it; nil if it is ours
}

// NewPostgres sees to it that PostgreSQL is installed, makes a database in
// dir, and has prepare work on it.
func NewPostgres(dir string, prepare func(dsn string) error) (*Postgres, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	p := &Postgres{programs: programs, original: filepath.Join(dir, "postgres")}
	if err := os.Mkdir(p.original, 0o700); err != nil {
		return nil, err
	}
	if p.user, err = unprivileged(p.original); err != nil {
		return nil, err
	}
	initdb := exec.Command(filepath.Join(programs, "initdb"), //nolint:noctx // it ends by itself
		"-D", p.original, "-A", "trust", "-U", "bench", "-E", "UTF8", "--no-locale", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = p.original, childOf(p.user, syscall.SIGKILL)
	if said, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, said)
	}
	s, err := p.serve(p.original)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	return p, prepare(s.DSN)
}

// Start starts a server on a copy in dir, with the settings of PostgreSQL itself
// but for room: a commit is answered after its sync. stop ends it.
func (p *Postgres) Start(dir string) (dsn string, stop func(), err error) {
	s, err := p.Run(dir)
	if err != nil {
		return "", nil, err
	}
	return s.DSN, s.Stop, nil
}

// Run is Start for a server that can be stopped and started again. It creates the directory.
// Settings override the usual ones, as in "fsync=off".
func (p *Postgres) Run(dir string, settings ...string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "postgres")
	// It keeps the owner, which may be another user than that of this process.
	if _, err := command.Run("", nil, "cp", "-a", p.original, data); err != nil {
		return nil, err
	}
	return p.serve(data, settings...)
}

func (p *Postgres) serve(data string, settings ...string) (*Server, error) {
	address, port, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{"-D", data, "-h", "127.0.0.1", "-p", port, "-k", data}
	for _, setting := range append([]string{
		"fsync=on", "synchronous_commit=on", "shared_buffers=128MB", "max_wal_size=2GB", "max_connections=200",
	}, settings...) {
		args = append(args, "-c", setting)
	}
	s := &Server{
		DSN: "postgres://bench@" + address + "/postgres?sslmode=disable", stop: syscall.SIGINT, kill: syscall.SIGQUIT,
	}
	s.start = func() (*process, error) {
		return start(data, childOf(p.user, syscall.SIGQUIT), func() error { return connect(s.DSN) },
			filepath.Join(p.programs, "postgres"), args...)
	}
	return s, s.Again()
}

// connect answers nil if the server takes queries: it listens before that.
func connect(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// postgresPrograms is the directory of the server's programs, which Debian keeps
// out of the path.
func postgresPrograms() (string, error) {
	if dir := findPostgres(); dir != "" {
		return dir, nil
	}
	if err := command.Need("initdb:postgresql"); err != nil {
		return "", err
	}
	if dir := findPostgres(); dir != "" {
		return dir, nil
	}
	return "", errors.New("PostgreSQL is installed, but there is no initdb in the path, nor below /usr/lib/postgresql")
}

// findPostgres answers "" if there is none.
func findPostgres() string {
	found, err := exec.LookPath("initdb")
	if err != nil {
		versions, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
		if len(versions) == 0 {
			return ""
		}
		found = slices.Max(versions)
	}
	// A link may be all that is in the path; the other programs are beside the real one.
	if target, err := filepath.EvalSymlinks(found); err == nil {
		found = target
	}
	return filepath.Dir(found)
}

// unprivileged returns an account for a server that refuses to run as root, and makes
// it the owner of dir. It returns nil if this process does not run as root.
func unprivileged(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and neither the account postgres nor nobody exists: %w", err)
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, uid, gid)
}
