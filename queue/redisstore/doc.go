// Package redisstore keeps durable tasks on a Redis or Valkey server, 6.2 or later, so that
// another host continues with them when this one is gone. All rules of the queue are those
// of the other stores; Redis keeps the rows, and says which process leads.
//
// # One leader
//
// Of all processes that use a store, one leads; Open returns [queue.ErrLed] in all others.
// The server has the leader's epoch, and each write names that of its writer. So a leader
// that was stopped or cut off, and has been replaced, changes nothing any more: its calls
// return [queue.ErrUnavailable], and [Store.Lost] is closed. A leader that closes its store
// hands over at once. One that ends without that is replaced when its lease has ended, by
// the clock of the server.
//
// # Servers
//
//	redis://user:password@host:6379/0                          a server; rediss:// with TLS
//	unix:///path/of/redis.sock?db=0                            the same, on this machine
//	redis://host1:6379?addr=host2:6379&addr=host3:6379         a Cluster, by some of its nodes
//	redis://host1:26379/0?master_name=main&addr=host2:26379    a server, by its Sentinels
//
// User and password are those of the server in each form. The Sentinels' own are the
// parameters sentinel_username and sentinel_password. The parameter addr makes the server a
// Cluster, so a Cluster with one known address repeats it there. Other parameters, such as
// dial_timeout=3s, pool_size=20 and skip_verify=true, are those of ParseURL of
// github.com/redis/go-redis/v9.
//
// # What survives
//
// A call is answered when the server has confirmed its changes, so they are as durable as
// the server makes them:
//
//   - appendonly yes, appendfsync always: they survive the end of the server and a loss of
//     power, as its disk keeps what was synced. This is the setting for a queue that must
//     lose nothing; all callers that wait share one sync.
//   - appendfsync everysec: they survive kill -9 of the server; a loss of power, or of the
//     machine, loses the last second, up to two if the disk is slow.
//   - appendfsync no: the same, but the last 30 s or so, as the kernel decides.
//   - appendonly no: the server loses what came after its last snapshot, also when it is
//     stopped or killed; everything if it makes none. The store logs a warning.
//   - Replicas receive changes later than calls are answered. A failover to a replica, by
//     Sentinel, Cluster or hand, loses what the replica had not received. With
//     [Config.Replicas], calls are answered when that many replicas have received their
//     changes (WAIT). That survives the loss of the primary if one of these replicas
//     replaces it, which Sentinel and Cluster try, but do not guarantee. Replicas confirm
//     what they have in memory, so with a power failure of all machines their appendfsync
//     counts.
//   - While a primary is cut off from its replicas, a process may lead there, and another
//     one at the new primary. What the first one answers is lost. min-replicas-to-write 1
//     on the server, or Config.Replicas, prevents that.
//
// A batch of changes is one script: the server keeps it as a whole or not at all, in its
// log, in a replica, and in a Cluster. Each batch has a number. If the server has an older
// one than it has confirmed, or nothing at all, it has lost changes: after a failover, or
// because it was started on an old copy. The process that leads notices that with its next
// change, or when it renews its lease if the epoch is older too, and Store.Lost is closed.
// The next Open continues with what is there: a process that opens the store afterwards
// cannot notice the loss.
//
// # While the server is away
//
// Changes wait until the server is back, or another process leads. Calls wait for 3 s, and
// return [queue.ErrUnavailable] with the reason afterwards, as later calls do at once; what
// had been decided is written when the server is back. This holds for a server that cannot
// be reached, loads its data, is a read-only replica, or has no disk space left.
// After a broken connection, the number of the last batch shows whether a batch was made,
// so that it is not lost and not made twice.
//
// The server must not remove keys by itself: Open refuses a maxmemory-policy of allkeys.
// A pending task with a payload of 100 bytes takes about 270 bytes of the server's memory.
// When maxmemory is reached, the store refuses new tasks with [queue.ErrUnavailable]. All else
// continues: tasks run and end, schedules submit, and commands cancel and purge. For that the store
// exceeds maxmemory by what these need.
//
// # Keys and their format
//
// All keys have the hash tag {stint}, from [Config.Prefix], so that they are on one node of a
// Cluster:
//
//	{stint}:leader    hash: format, epoch and batch (decimal numbers), id, name and contact of
//	                  the leader, since and until (ms since 1970, the server's clock)
//	{stint}:leases    hash: row of the lease log to 16 hexadecimal digits, the number of the
//	                  write, and up to 1.8 kB of entries, as package lease encodes them
//	{stint}:rows:t    hash: key to value, for keys that begin with t; other letters alike
//
// Keys and values of rows are those of all stores. There is no index beside the hashes: the
// order of the tasks is in the memory of the leader, which reads all rows in Open. A store
// has format 2, converts format 1, and refuses to open another one, a key of another type, and rows
// without a leader. A change of the format increments it.
package redisstore

// The files:
//
//   - redisstore.go: Config, Store, Open and Close
//   - url.go: the server, Cluster or Sentinels that a URL names
//   - server.go: the check of the server's settings
//   - rows.go: reads and writes rows; the lease of the leader
//   - batch.go: the changes of a batch by hash
//   - scripts.go: runs scripts, and waits for replicas
//   - lead.lua: begins the lease of the leader
//   - renew.lua: extends it
//   - apply.lua: writes a batch
//   - putleases.lua: writes rows of the lease log
//   - readkeys.lua: reads rows
//   - touch.lua: writes nothing new, so that WAIT covers earlier writes
//   - full.lua: the part of scripts that detects a full memory
//   - errors.go: the errors of servers and scripts
//   - place.go: Place, for moves to and from other stores
