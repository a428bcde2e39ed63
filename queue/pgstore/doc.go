// Package pgstore keeps durable tasks in PostgreSQL (13 or newer), in tables of a schema of
// its own, so that it can share the database of an application.
//
// One process at a time leads: it decides in memory what happens to tasks, as every store
// does, and writes rows in batches. Another process that opens the store gets
// [queue.ErrLed] while the lease of the leader lasts, which the leader renews by the clock
// of the database. Each write names the epoch of its leader, so a process that was stopped
// or cut off, and continues after another one has taken the lead, changes nothing. With
// package cluster, several processes share the store. [SubmitTx] submits tasks in a
// transaction of the caller.
//
// # What survives
//
// A call is answered when the transaction with its changes has been committed. With
// synchronous_commit=on, the default of PostgreSQL, it survives a crash of the server and a
// loss of power; with synchronous replicas also the loss of the server: a batch whose
// connection broke while the server waited for them is answered when they have it. With
// synchronous_commit=off (which can be set for the user of the store: ALTER ROLE … SET
// synchronous_commit = off) a crash of the server loses up to three times wal_writer_delay
// of answered calls, 0.6 s by default. If a server comes back with less than it has
// confirmed, as an asynchronous replica may, the leader notices it by the number of its last
// batch, and stops.
//
// Every claim counts as [queue.Claim.Remote]: since the process that made it may live on
// while another one leads, its lease lasts until it expires.
//
// # Connections
//
// The store uses a pool of connections; pool_max_conns and the other parameters of pgxpool
// may be in the URL. No state is kept in a session, so the store works through PgBouncer in
// the transaction mode. Without a pooler in between, which the first connection finds out,
// each connection prepares its statements once; the parameter default_query_exec_mode of the
// URL decides otherwise. If the URL names several hosts, target_session_attrs=read-write
// finds the one that takes writes. The user needs no privileges but those on the schema,
// which Open creates if it may and there is none. The schema may be created beforehand:
//
//	CREATE SCHEMA stint AUTHORIZATION jobs
//
// # Tables
//
// schema.sql has the tables and the format, which leader.format numbers. Open creates the
// tables in one transaction, with an advisory lock, so that many processes may start at
// once. A later version converts the tables of an earlier one when no process leads; the
// earlier one refuses the result. The keys and values of rows are the same as those of
// other stores.
//
// A row is written some four times and then removed. The leader vacuums the table of the
// rows whenever a fifth of it, but at least 100,000 rows, have been written, over a
// connection of its own: the server looks for dead rows only once a minute by default, in
// which a busy store writes many times what it keeps. The user must own the table for that,
// as it does after Open has created it. A long transaction in the same database, such as
// pg_dump, keeps PostgreSQL from removing former versions of rows, so the tables grow until
// it ends.
package pgstore

// The files:
//
//   - pgstore.go: Config, Store, Open and Close
//   - target.go: the database that a URL names
//   - dial.go: connections, and how dead ones end in time
//   - session.go: how statements are sent, with a pooler in between or without
//   - migrate.go: makes the tables, from schema.sql
//   - server.go: the warning of a server that does not keep what it confirms
//   - rows.go: reads and writes rows
//   - lead.go: the lease of the leader
//   - vacuum.go: removes dead rows from the table
//   - submittx.go: SubmitTx, in transactions of callers
//   - settletx.go: SettleTx, in transactions of callers
//   - fence.go: keeps an attempt from being settled both there and here
//   - inbox.go: accepts what such transactions have written
//   - place.go: Place, for moves to and from other stores
