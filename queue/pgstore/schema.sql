-- Format 1. $schema is replaced by the quoted name of the schema.
--
-- The rows of the state machine. A row of a task is written some four times and then
-- removed, so the tables are vacuumed early and without pauses, and pages keep room for
-- updates in place. Values are stored as they are: compressing rows of 200 bytes costs more
-- than it saves.
create table $schema.rows (
	key   bytea primary key,
	value bytea not null
) with (
	fillfactor = 70,
	autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
	toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_cost_delay = 0
);
alter table $schema.rows alter column value set storage external;

-- The lease log: an entry for each lease that is alive, and for some that have ended. Since
-- format 2 the entries of leases that began together share a row.
create table $schema.leases (
	slot  int primary key, -- number of the row
	put   bigint not null, -- number of the write; a larger one wins
	entry bytea not null   -- less than 2 kB of entries: larger values are compressed, and stored elsewhere
) with (
	fillfactor = 50,
	autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
);

-- The number of the last batch, in one row. Each batch changes it. While a long transaction
-- in this database, such as pg_dump, keeps all former versions of the row, the index finds
-- the present one at once; a number in the row of the leader would be searched for in all.
create table $schema.batch (
	number bigint primary key
) with (
	autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0
);
insert into $schema.batch values (0);

-- The one process that may write. Its updates change no index, and find room in the page.
create table $schema.leader (
	one     int primary key default 1 check (one = 1),
	program text not null default 'stint',
	format  int not null,
	epoch   bigint not null default 0,         -- of the leader; every write names it
	id      text not null default '',          -- chosen by the leader's process at random
	name    text not null default '',          -- of the leader, for people
	contact text not null default '',          -- of the leader, for other processes
	since   timestamptz not null default 'epoch',
	until   timestamptz not null default 'epoch' -- the end of the lease
) with (
	fillfactor = 10,
	autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0
);
insert into $schema.leader (format) values (1);
