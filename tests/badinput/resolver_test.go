package badinput

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	grpcresolver "google.golang.org/grpc/resolver"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/resolver"
)

// resolverSection: configs, and targets.
func resolverSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	s := st.section("resolver", "gRPC returns the error of `Build` to the caller.")
	refuses := func(tried string, try func() error) {
		s.rows = append(s.rows, row{tried: tried, op: "resolve", want: errInvalid, try: try})
	}
	etcd := func(tried string, change func(*resolver.EtcdConfig)) {
		cfg := resolver.EtcdConfig{KV: st.Client, Watcher: st.Client}
		change(&cfg)
		refuses("`FromEtcd`: "+tried, func() error { return second(resolver.FromEtcd(cfg)) })
	}
	etcd("no KV", func(cfg *resolver.EtcdConfig) { cfg.KV = nil })
	etcd("a nil `*clientv3.Client`", func(cfg *resolver.EtcdConfig) { cfg.KV, cfg.Watcher = none, none })
	etcd("no watcher", func(cfg *resolver.EtcdConfig) { cfg.Watcher = nil })
	etcd("a negative time-out in `Observer`", func(cfg *resolver.EtcdConfig) { cfg.Observer.Timeout = -1 })
	etcd("an empty endpoint", func(cfg *resolver.EtcdConfig) { cfg.Endpoints = map[string]string{"n1": ""} })
	nodes := func(tried string, cfg resolver.NodesConfig) {
		refuses("`FromNodes`: "+tried, func() error { return second(resolver.FromNodes(cfg)) })
	}
	nodes("no addresses", resolver.NodesConfig{})
	nodes("an empty address", resolver.NodesConfig{Addresses: []string{"a:1", ""}})
	nodes("an empty endpoint", resolver.NodesConfig{Addresses: []string{"a:1"}, Endpoints: map[string]string{"n1": ""}})
	nodes("an endpoint of no node", resolver.NodesConfig{Addresses: []string{"a:1"}, Endpoints: map[string]string{"": "a:1"}})
	nodes("a negative time-out", resolver.NodesConfig{Addresses: []string{"a:1"}, Timeout: -1})

	builder, err := resolver.FromEtcd(resolver.EtcdConfig{KV: st.Client, Watcher: st.Client})
	require.NoError(t, err)
	build := func(tried, target, election string) {
		u, err := url.Parse(target)
		require.NoError(t, err)
		s.rows = append(s.rows, row{tried: "`Build`: " + tried, op: "resolve", election: election, want: errInvalid, try: func() error {
			return second(builder.Build(grpcresolver.Target{URL: *u}, nil, grpcresolver.BuildOptions{}))
		}})
	}
	build("`eldest:///`", "eldest:///", "")
	build("`eldest://orders`", "eldest://orders", "")
	build("`eldest://host:1/orders`", "eldest://host:1/orders", "")
	build("`eldest:///orders/eu`", "eldest:///orders/eu", "orders/eu")
	build("`eldest:///orders%2Feu`", "eldest:///orders%2Feu", "orders/eu")
	build("`eldest:///orders?eu`", "eldest:///orders?eu", "")
	build("a name of 1,025 bytes", resolver.Target(long(1024)), long(1024))
	return s
}
