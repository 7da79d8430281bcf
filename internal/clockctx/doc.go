// Package clockctx carries a clock in a context, to code whose API has no place for one:
// compat/concurrency, which exports what etcd's package exports and nothing more. Sessions of
// the laboratory in virtual time, which the clock of the machine knows nothing of, get
// their clock this way. Programs set lease.Config.Clock.
package clockctx
