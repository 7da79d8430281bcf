// Package benchsite provides the environment of a benchmark: a cluster that it starts or an
// existing one, the members' metrics, and processes that run candidates and observers.
//
// The members of a cluster that it starts are processes, so that the operating system schedules
// their work, and not the Go runtime of the candidates. They have etcd's default timeouts and
// fsync, and no proxies between them. Whether fsync costs anything depends on where the data is,
// which bench.Site.Storage reports. Members, data and workers do not outlive this process, however
// it ends.
//
// A worker first reads one line that describes how to reach the cluster (other users could read a
// password on a command line).
//
// # Not guaranteed
//
// The metrics of an existing cluster can be read only if its client URLs serve them to this user.
// Otherwise bench.Site.Metrics is nil.
package benchsite
