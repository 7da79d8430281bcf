package resolver

import (
	"context"
	"fmt"
	"maps"

	clientv3 "go.etcd.io/etcd/client/v3"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/observe"
)

// EtcdConfig configures FromEtcd. KV and Watcher are required. It is copied by FromEtcd.
type EtcdConfig struct {
	// KV and Watcher are the RPC surface: a *clientv3.Client is both; so are namespaced
	// clients. They are not closed.
	KV      clientv3.KV
	Watcher clientv3.Watcher
	// Codec decodes the values of candidates. nil means identity.Protobuf.
	Codec identity.Codec
	// Endpoints has, by node ID, the address to dial in place of the one that the node publishes;
	// see NodesConfig.Endpoints.
	Endpoints map[string]string
	// ServerName, if set, returns the name that the leader's certificate must be valid for. nil
	// means the name in the target. It must be quick.
	ServerName func(leader identity.Identity) string
	// Observer configures the observation of the election.
	Observer observe.Options
}

// FromEtcd returns a builder for grpc.WithResolvers, for any number of connections to
// any elections. It sends nothing. The error wraps eldest.ErrInvalid.
func FromEtcd(cfg EtcdConfig) (grpcresolver.Builder, error) {
	if absent.Client(cfg.KV) || absent.Client(cfg.Watcher) {
		return nil, invalid("EtcdConfig.KV or Watcher is nil")
	}
	if err := cfg.Observer.Check(); err != nil {
		return nil, &eldest.OpError{Op: "resolve", Err: err}
	}
	if err := checkEndpoints("EtcdConfig", cfg.Endpoints); err != nil {
		return nil, err
	}
	cfg.Endpoints = maps.Clone(cfg.Endpoints)
	if cfg.Codec == nil {
		cfg.Codec = identity.Protobuf{}
	}
	cfg.Observer.Backoff = retry.Or(cfg.Observer.Backoff, retry.Default())
	return builder(func(to publisher, _ grpcresolver.BuildOptions) func(context.Context) {
		to.serverName, to.endpoints = cfg.ServerName, cfg.Endpoints
		election := observe.Config{Election: to.election, KV: cfg.KV, Watcher: cfg.Watcher, Options: cfg.Observer}
		return (&etcdSource{codec: cfg.Codec, cfg: election, to: to}).run
	}), nil
}

// etcdSource follows one election for one connection.
type etcdSource struct {
	codec identity.Codec
	cfg   observe.Config
	to    publisher
}

// run observes until ctx ends or the etcd client is closed. An observer ends by itself if etcd
// refuses permanently; but a permission may be granted later, and an error like that of a closed
// client may have another cause. A resolver cannot report that it has given up, so another observer
// is tried.
func (e *etcdSource) run(ctx context.Context) {
	for refused := 0; ; refused++ {
		learned, err := e.observe(ctx)
		if ctx.Err() != nil {
			return
		}
		e.to.unknown(err)
		if rpcerr.Closed(e.cfg.KV) {
			return // further attempts are useless
		}
		if learned {
			refused = 0
		}
		if retry.Sleep(ctx, e.cfg.Backoff(refused)) != nil {
			return
		}
	}
}

// observe publishes what an observer reports until that ends or ctx does. learned is true if etcd
// has responded.
func (e *etcdSource) observe(ctx context.Context) (learned bool, err error) {
	observer, err := observe.New(e.cfg)
	if err != nil {
		return false, err
	}
	defer observer.Close()
	states := observer.Subscribe()
	for {
		state, err := states.Next(ctx)
		if err != nil {
			return learned, err
		}
		switch state.Kind {
		case eldest.Unknown:
			e.to.unknown(state.Reason)
			continue
		case eldest.Nobody:
			e.to.unknown(eldest.ErrNoLeader)
		case eldest.Led:
			e.led(state.Leader)
		}
		learned = true
	}
}

func (e *etcdSource) led(leader eldest.Leader) {
	id, err := e.codec.Decode(leader.Value)
	if err != nil {
		e.to.unknown(fmt.Errorf("key %q leads: %w", leader.Key, err))
		return
	}
	e.to.leads(leader.Token, id)
}

var errNoAddress = fmt.Errorf("%w with an address", eldest.ErrNoLeader)
