package concurrency

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// defaultTTL is that of etcd's package, in seconds.
const defaultTTL = 60

// sessionOptions are the settings of NewSession's options.
type sessionOptions struct {
	ttl     int // in seconds
	leaseID clientv3.LeaseID
	ctx     context.Context
}

// SessionOption configures NewSession. The logger is the client's.
type SessionOption func(*sessionOptions, *zap.Logger)

// WithTTL sets the session's TTL in seconds; the server may grant more. A TTL that is not positive
// changes nothing, and the client's logger gets a warning. The default is 60 s.
func WithTTL(ttl int) SessionOption {
	return func(o *sessionOptions, lg *zap.Logger) {
		if ttl <= 0 {
			lg.Warn("a session's TTL must be positive; the TTL is not changed", zap.Int("wanted", ttl), zap.Int("current-session-ttl", o.ttl))
			return
		}
		o.ttl = ttl
	}
}

// WithLease makes the session renew an existing lease instead of a new one, for example after a
// restart of the process. NewSession then renews it once before it returns; if the lease has
// expired, or is not confirmed within 5 s or before the session's context ends, NewSession returns a
// session that is done already. 0 means a new lease; a negative ID counts as an expired lease, without
// a request.
func WithLease(leaseID clientv3.LeaseID) SessionOption {
	return func(o *sessionOptions, _ *zap.Logger) { o.leaseID = leaseID }
}

// WithContext bounds NewSession, the session and Close with ctx instead of the client's context.
// When ctx ends, the lease is no longer renewed, and is left to expire; Close can then not revoke
// it any more.
func WithContext(ctx context.Context) SessionOption {
	return func(o *sessionOptions, _ *zap.Logger) { o.ctx = ctx }
}
