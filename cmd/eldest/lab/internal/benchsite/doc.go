// Package benchsite is where "eldest bench" measures: a cluster of its own, or what can
// be learned of somebody else's, and the processes over which a run is spread.
//
// # A cluster of its own
//
// Start has package etcdtest run each member as a process of its own, so that a member's
// work is scheduled by the system and not beside the candidates' in one Go runtime. Nothing
// is unusual about the members: etcd's own timeouts, fsync as etcd does it, no proxies
// between them. Whether fsync costs anything depends on where the data lies, which Start
// says. The members and their data are gone with this process, however it ends.
//
// # Workers
//
// A worker reads one line of its caller's, which says how to reach the cluster (a password
// must not be on a command line, where everybody can read it), and then speaks package
// bench's protocol. It dies with this process.
//
// # Not guaranteed
//
// That the servers' counters can be had of somebody else's cluster: its /metrics may be
// served elsewhere, or not to us. Then they are left out.
package benchsite
