package elector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/endpoints"
	"github.com/eldest-io/eldest/lease"
)

// Option changes the Config of Run. Any function of this type can be used; this package has options
// for what most programs set.
type Option func(*Config)

// WithNodeID names this node: one running process for each ID. Without it the name consists of the
// host name and the process ID.
func WithNodeID(id string) Option { return func(c *Config) { c.NodeID = id } }

// WithTTL sets the time to live of the lease: how long an election has no leader after a leader has
// crashed. See lease.Config.TTL.
func WithTTL(ttl time.Duration) Option { return func(c *Config) { c.Session.TTL = ttl } }

// WithHeartbeat makes a successor replace a leader that has sent no heartbeat for the timeout,
// without waiting for its lease to expire. See lease.Heartbeat for the cost.
func WithHeartbeat(timeout time.Duration) Option {
	return func(c *Config) { c.Session.Heartbeat = lease.Heartbeat{Timeout: timeout} }
}

// WithStandby makes f run while this node waits to lead. See Config.Standby.
func WithStandby(f func(ctx context.Context, p *Positions)) Option {
	return func(c *Config) { c.Standby = f }
}

// WithLogger sets the logger. The default is slog.Default().
func WithLogger(l *slog.Logger) Option { return func(c *Config) { c.Logger = l } }

// Run campaigns in an election and calls lead in each tenure, again and again, until ctx ends. Then
// it gives leadership up, waits for lead, and returns nil.
//
// lead is called with a context that carries ctx's values and ends with ctx or the tenure, whichever
// is first. One call never overlaps another (G7). When lead returns, with or without an error,
// leadership is given up, and the node campaigns again after a pause; an error is logged. What lead
// writes to etcd through l.KV or l.Txn is refused once the tenure is over (G4).
//
// Run logs failures and retries; while etcd is unavailable it waits. It returns an error that wraps
// eldest.ErrInvalid, before anything is sent, for bad input; and eldest.ErrStuck if ctx has ended
// and lead has not returned within Config.Drain. Elector has more: a status, transfers of
// leadership, clients that can be replaced; Group campaigns in many elections.
func Run(ctx context.Context, client *clientv3.Client, election string, lead func(ctx context.Context, l *Leadership) error, options ...Option) error {
	host, _ := os.Hostname() // if it is empty, the name has the process ID alone
	cfg := Config{
		Election: election, NodeID: fmt.Sprintf("%s-%d", host, os.Getpid()), Source: Always(Client(client)), Logger: slog.Default(),
	}
	for _, option := range options {
		option(&cfg)
	}
	if client == nil || ctx == nil || lead == nil {
		return failed("run", election, invalid("the context, the client or the lead function is nil"))
	}
	e, err := New(cfg)
	if err != nil {
		return err
	}
	err = e.Run(ctx, lead)
	if ctx.Err() == nil || errors.Is(err, eldest.ErrStuck) {
		return err
	}
	return nil
}

// Dial connects to etcd with the settings that leases need. It sets the fields of cfg that are not
// set: keepalives, so that a dead connection is noticed in time; a logger for errors only, because
// etcd's client logs a warning for each refused request, including those that are repeated; and, by
// a dial option that those of cfg override, pauses between attempts to connect of at most a second,
// where gRPC's grow to two minutes. It sends nothing, unless there is a user to log in. The caller
// closes the client.
//
// The client follows etcd's members until it is closed, on one goroutine, so that they can be
// replaced while the program runs. Its endpoints are those of cfg, which are never removed, and a
// client URL of each other voting member, once that URL has answered as that member. Lists of the
// members arrive with the renewals of a session. Without one the client requests the list every
// AutoSyncInterval, 0 means 30 s, and, after failed requests, every tenth of that. A negative
// interval disables this; set it if the endpoints are proxies that the client must not bypass, or if
// another cluster with the same IDs can be reached from here: clusters have the same IDs if they were
// bootstrapped with the same names, URLs and --initial-cluster-token. Sync and SetEndpoints may be
// called at any time. They set the endpoints that are kept.
func Dial(cfg clientv3.Config) (*clientv3.Client, error) {
	if cfg.DialKeepAliveTime == 0 {
		cfg.DialKeepAliveTime = 10 * time.Second // the shortest that gRPC clients accept
	}
	if cfg.DialKeepAliveTimeout == 0 {
		cfg.DialKeepAliveTimeout = 3 * time.Second
	}
	if cfg.Logger == nil && cfg.LogConfig == nil {
		logger, err := zap.NewProduction(zap.IncreaseLevel(zap.ErrorLevel))
		if err != nil {
			return nil, err
		}
		cfg.Logger = logger
	}
	return endpoints.Dial(cfg)
}
