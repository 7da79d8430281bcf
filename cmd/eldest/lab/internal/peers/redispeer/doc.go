// Package redispeer elects with a lock in Redis, by module redsync: in one server ([Single]), or in the
// majority of three independent ones ([Redlock]). A candidate tries to lock again and again; the leader
// extends its lock.
//
// # Not guaranteed
//
// That one leads at most. A lock expires while its holder is stopped, and Redlock relies on clocks. Only
// [Single] guards what a leader writes, with a script that compares the lock's value; redsync has none.
package redispeer
