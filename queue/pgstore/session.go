package pgstore

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sessions decides once, before the first connection of a pool, how its statements are sent.
//
// If the connections go to the server itself, each prepares a statement once, which the server
// otherwise parses and plans for each call. Through a pooler such as PgBouncer a connection may
// have another session in each transaction, which does not know the statement. Then only the
// description of its parameters is kept.
type sessions struct {
	own atomic.Pointer[bool] // whether each connection has one session; nil: not known
}

// prepare sets how a connection that is about to be made sends statements.
func (s *sessions) prepare(ctx context.Context, cfg *pgx.ConnConfig) error {
	own := s.own.Load()
	if own == nil {
		found, err := hasOwnSession(ctx, cfg)
		if err != nil {
			return err
		}
		own = &found
		s.own.Store(own)
	}
	if !*own {
		return nil
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	// The plan of a prepared statement stays when the table grows. One that reads the whole
	// table is the best only while the table is small. Some tables have one row and no index
	// for it: the server then takes the plan for so expensive that compiling it would pay.
	cfg.RuntimeParams["enable_seqscan"] = "off"
	cfg.RuntimeParams["jit"] = "off"
	return nil
}

// hasOwnSession reports whether a connection goes to a process of the server. A pooler has
// other numbers for its connections than the server for its processes.
func hasOwnSession(ctx context.Context, cfg *pgx.ConnConfig) (bool, error) {
	ctx, stop := context.WithTimeout(ctx, cfg.ConnectTimeout) // the pool has set it
	defer stop()
	c, err := pgconn.ConnectConfig(ctx, &cfg.Config)
	if err != nil {
		return false, err
	}
	defer func() { _ = c.Close(ctx) }()
	results, err := c.Exec(ctx, `select pg_backend_pid()`).ReadAll()
	if err != nil {
		return false, err
	}
	return string(results[0].Rows[0][0]) == strconv.FormatUint(uint64(c.PID()), 10), nil
}
