// Package benchsite gives a benchmark what it measures on: a cluster of its own or one that exists, the
// members' metrics, and processes to host candidates and observers.
//
// The members of a cluster of its own are processes, so that a member's
// work is scheduled by the system and not beside the candidates' in one Go runtime. They have
// etcd's own timeouts and fsync, and no proxies
// between them. Whether fsync costs anything depends on where the data is, which bench.Site.Storage
// says. Members, data and workers are gone with this process, however it ends.
//
// A worker first reads one line, which says how to reach the cluster (a password
// must not be on a command line, where everybody can read it).
//
// # Not guaranteed
//
// That the metrics of a cluster that exists can be read: they may be
// served elsewhere, or not to us. Then bench.Site.Metrics is nil.
package benchsite
