// Package clockctx carries a clock in a context, to code whose API has no place for one:
// compat/concurrency, which exports exactly what etcd's package exports. The laboratory runs
// sessions in virtual time, which the clock of the machine does not follow; they get their clock in
// this way. Programs set lease.Config.Clock.
package clockctx
