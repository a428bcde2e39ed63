package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintgo/stint/queue"
)

// target is a database to connect to.
type target struct {
	name   string // for messages, without a password
	config *pgxpool.Config
}

// parse parses the URL of a database.
func parse(url string) (target, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return target{}, fmt.Errorf("%w: the URL of the database: %w", queue.ErrInvalid, err) // without its password
	}
	if !strings.Contains(url, "default_query_exec_mode") {
		// One round trip for each call, and no prepared statements, unless prepare decides
		// otherwise.
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		cfg.BeforeConnect = new(sessions).prepare
	}
	cfg.MaxConns = max(cfg.MaxConns, 2) // the lease is renewed while the store is read
	c := cfg.ConnConfig
	c.DialFunc = dial
	return target{fmt.Sprintf("PostgreSQL at %s:%d, database %s", c.Host, c.Port, c.Database), cfg}, nil
}

// Values of SQLSTATE.
const (
	undefinedTable  = "42P01" // also if there is no schema
	undefinedColumn = "42703"
)

// errNoLeader is the error for a table leader without its row.
var errNoLeader = errors.New("the table leader is empty: restore the tables of the store from a copy of the database")

// refusal is an error that another attempt does not change.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// notPrepared is what to do about prepared statements that another session has.
const notPrepared = "a pooler that passes for the server changes sessions: " +
	"add default_query_exec_mode=cache_describe to the URL"

// leaderChanged is a division by zero, which only a batch makes that has not found its leader and number.
const leaderChanged = "22012"

// remediesTable has what to do about errors of PostgreSQL, by SQLSTATE, and whether Open gives up.
var remediesTable = map[string]struct {
	do    string
	final bool
}{
	"28000":        {"check the user of the URL, and pg_hba.conf of the server", true},
	"28P01":        {"check the user and the password of the URL", true},
	"3D000":        {"create the database, or check the name in the URL", true},
	"42501":        {"grant the privilege, or create the schema for this user: CREATE SCHEMA … AUTHORIZATION …", true},
	undefinedTable: {"the tables of the store are gone: restore them from a copy of the database", false},
	"25006":        {"the server is a replica, or is set to read only: use the primary server", false},
	"26000":        {notPrepared, false},
	"42P05":        {notPrepared, false},
	"53100":        {"make room on the disk of the server", false},
	"53300":        {"no connection is left: raise max_connections, or lower pool_max_conns (not below 2)", false},
	"57P03":        {"the server is starting or stopping", false},
}

// explain adds the remedy to an error of PostgreSQL.
func explain(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return errNoLeader
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
			return fmt.Errorf("the server cannot be reached: start it, or correct the address: %w", err)
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("the server does not answer in time: it hangs, or the network is cut: %w", err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("the connection was closed: the server ends, or is not PostgreSQL: %w", err)
		case err != nil && strings.Contains(err.Error(), "server refused TLS"): // pgconn has no value for it
			return refusal{fmt.Errorf("the server has no TLS: set ssl on there, or another sslmode in the URL: %w", err)}
		}
		return err
	}
	if pg.Code == leaderChanged {
		return errors.New("the server has another leader, or another batch, than this process expects; it is looked up")
	}
	remedy, ok := remediesTable[pg.Code]
	if !ok {
		return err
	}
	if err = fmt.Errorf("%w: %s", err, remedy.do); remedy.final {
		return refusal{err}
	}
	return err
}
