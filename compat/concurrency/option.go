package concurrency

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// defaultTTL is that of etcd's package, in seconds.
const defaultTTL = 60

// sessionOptions are what the options of NewSession say.
type sessionOptions struct {
	ttl     int // in seconds
	leaseID clientv3.LeaseID
	ctx     context.Context
}

// SessionOption configures NewSession. The logger is the client's.
type SessionOption func(*sessionOptions, *zap.Logger)

// WithTTL sets the session's TTL in seconds; the server may grant more. One that is not
// positive is warned of in the client's log and changes nothing. 60 s without this option.
func WithTTL(ttl int) SessionOption {
	return func(o *sessionOptions, lg *zap.Logger) {
		if ttl <= 0 {
			lg.Warn("a session's TTL must be positive; the TTL stays", zap.Int("wanted", ttl), zap.Int("current-session-ttl", o.ttl))
			return
		}
		o.ttl = ttl
	}
}

// WithLease has the session renew a lease that exists instead of one of its own, as after
// a restart of the process. NewSession then renews it once before it returns; of a lease
// that is gone, or that nobody confirms within 5 s, it makes a session that is done
// already. 0 means a lease of its own; a negative one is taken for gone, unasked.
func WithLease(leaseID clientv3.LeaseID) SessionOption {
	return func(o *sessionOptions, _ *zap.Logger) { o.leaseID = leaseID }
}

// WithContext bounds NewSession, the session's life and Close with ctx instead of the
// client's context. When ctx ends, the lease is no longer renewed, and is left to expire;
// Close can then not revoke it any more.
func WithContext(ctx context.Context) SessionOption {
	return func(o *sessionOptions, _ *zap.Logger) { o.ctx = ctx }
}
