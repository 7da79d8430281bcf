// Package postgres elects a leader in PostgreSQL, by a session-level advisory lock, with the client pgx.
//
// Each candidate has a connection of its own and asks for the same lock. The one that is granted it leads until it
// unlocks, or until the server notices that its connection is broken. The server queues the others.
//
// There is one server, started from Debian's package postgresql-15. A standby does not have the locks of the primary
// server, so failover ends all leaderships without a notice; that is why the peer has no more servers.
//
// # The client
//
// No documentation tells a leader how to notice that it has lost its connection. With the defaults it believes that it
// leads until a statement of its own has failed. With the shortest settings it also pings the server each second.
//
// A statement whose context ends ends the connection, and so the leadership: pgx closes a connection whose answer it
// has not read.
//
// # Not guaranteed
//
//   - That two leaders never overlap, by belief. Two never write at the same time: the server runs a leader's
//     statement in the process that holds the lock.
//   - That Writes counts every write to the write-ahead log. It counts the transactions that have changed data; the
//     server also logs checkpoints and its own snapshots.
//   - That a candidate gets a connection: the server refuses more than max_connections.
package postgres
