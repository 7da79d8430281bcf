package badinput

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// instance is a curator that serves kvpb.KV, and a caller's connection to it.
type instance struct {
	*curator.Curator
	election string
	address  string
	conn     *grpc.ClientConn
	kvpb.KVClient
	// handled counts the calls that reached the service here, arrived counts those that came to
	// this node, hops included.
	handled, arrived atomic.Int64
}

// store answers every Put.
type store struct {
	kvpb.UnimplementedKVServer
	*instance
}

func (s store) Put(context.Context, *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	s.handled.Add(1)
	return &kvpb.PutResponse{}, nil
}

// listen returns a listener on a loopback address.
func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return listener
}

// never is a source that has no clients: the node's role stays Unknown.
func never(ctx context.Context) (elector.Clients, error) {
	<-ctx.Done()
	return elector.Clients{}, context.Cause(ctx)
}

// serve runs an instance until the test ends.
func (s *stage) serve(id string, source elector.Source, change ...func(*curator.Config)) *instance {
	s.T.Helper()
	listener := listen(s.T)
	i := &instance{address: listener.Addr().String()}
	cfg := curator.Config{
		Elector:   s.node(id),
		Listeners: []curator.Listener{{Listener: listener}},
		Wait:      time.Second, // long enough to make a connection on a busy machine
		Services: func(_ context.Context, _ *elector.Leadership, r grpc.ServiceRegistrar) error {
			kvpb.RegisterKVServer(r, store{instance: i})
			return nil
		},
		ServerOptions: []grpc.ServerOption{grpc.ChainStreamInterceptor(
			func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
				if info.FullMethod == kvpb.KV_Put_FullMethodName {
					i.arrived.Add(1)
				}
				return handle(srv, stream)
			})},
	}
	cfg.Elector.Source = source
	for _, f := range change {
		f(&cfg)
	}
	i.election = cfg.Elector.Election
	var err error
	i.Curator, err = curator.New(cfg)
	require.NoError(s.T, err)
	if cfg.Listeners[0].Credentials == nil {
		s.connect(i, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	ctx, stop := context.WithCancel(context.Background())
	done := etcdtest.Go(func() error { return i.Run(ctx) })
	s.T.Cleanup(func() {
		stop()
		require.ErrorIs(s.T, <-done, context.Canceled)
		require.NoError(s.T, i.conn.Close())
	})
	return i
}

// connect dials an instance for a caller.
func (s *stage) connect(i *instance, options ...grpc.DialOption) {
	s.T.Helper()
	var err error
	i.conn, err = grpc.NewClient(i.address, options...)
	require.NoError(s.T, err)
	i.KVClient = kvpb.NewKVClient(i.conn)
}

// becomes waits for a role.
func (i *instance) becomes(s *stage, role elector.Role) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.Ctx, etcdtest.Patience)
	defer cancel()
	require.NoError(s.T, etcdtest.Err(i.Watch().NextWhere(ctx, func(st elector.Status) bool { return st.Role() == role })), "it is %v", i.Status())
}

// curatorSection: configs, and Run.
func curatorSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	listener := listen(t)
	everywhere, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	local, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, listener.Close(), "New must not touch it")
		require.NoError(t, everywhere.Close(), "New must not touch it")
		require.NoError(t, local.Close(), "New must not touch it")
	})
	good := func() curator.Config {
		return curator.Config{
			Elector: st.node("n1"), Listeners: []curator.Listener{{Listener: listener}},
			Services: func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
		}
	}
	s := st.section("curator: configs", "`New` unless said otherwise. The listener is not used.")
	refuses := func(tried, op string, change func(*curator.Config)) {
		cfg := good()
		change(&cfg)
		s.rows = append(s.rows, row{tried: tried, op: op, election: cfg.Elector.Election, want: errInvalid, try: func() error {
			return second(curator.New(cfg))
		}})
	}
	var typed *net.TCPListener
	register := func(desc ...*grpc.ServiceDesc) func(*curator.Config) {
		return func(cfg *curator.Config) {
			cfg.Local = func(r grpc.ServiceRegistrar) {
				for _, d := range desc {
					r.RegisterService(d, store{})
				}
			}
		}
	}
	refuses("no listeners", "new curator", func(cfg *curator.Config) { cfg.Listeners = nil })
	refuses("a listener that is nil", "new curator", func(cfg *curator.Config) { cfg.Listeners = append(cfg.Listeners, curator.Listener{}) })
	refuses("a nil `*net.TCPListener`", "new curator", func(cfg *curator.Config) { cfg.Listeners[0].Listener = typed })
	refuses("a listener twice", "new curator", func(cfg *curator.Config) {
		cfg.Listeners = append(cfg.Listeners, curator.Listener{Listener: listener, Credentials: insecure.NewCredentials()})
	})
	refuses("a listener on all addresses, and no address to dial", "new curator", func(cfg *curator.Config) { cfg.Listeners[0].Listener = everywhere })
	refuses("a Unix socket, a listener on all addresses, and no address to dial", "new curator", func(cfg *curator.Config) {
		cfg.Listeners = []curator.Listener{{Listener: local}, {Listener: everywhere}}
	})
	refuses("no services", "new curator", func(cfg *curator.Config) { cfg.Services = nil })
	refuses("`Wait` −1 s", "new curator", func(cfg *curator.Config) { cfg.Wait = -time.Second })
	refuses("`Drain` −1 s", "new curator", func(cfg *curator.Config) { cfg.Drain = -time.Second })
	refuses("`Grace` −1 s", "new curator", func(cfg *curator.Config) { cfg.Grace = -time.Second })
	refuses("`Shutdown` −1 s", "new curator", func(cfg *curator.Config) { cfg.Shutdown = -time.Second })
	refuses("`MaxMessage` −1", "new curator", func(cfg *curator.Config) { cfg.MaxMessage = -1 })
	refuses("`MaxMetadata` −1", "new curator", func(cfg *curator.Config) { cfg.MaxMetadata = -1 })
	refuses("`MaxWaiting` −1", "new curator", func(cfg *curator.Config) { cfg.MaxWaiting = -1 })
	refuses("`MaxHeld` −1", "new curator", func(cfg *curator.Config) { cfg.MaxHeld = -1 })
	refuses("`Reads` without `ReadAge`", "new curator", func(cfg *curator.Config) { cfg.Reads = func(grpc.ServiceRegistrar) {} })
	refuses("`ReadAge` without `Reads`", "new curator", func(cfg *curator.Config) {
		cfg.ReadAge = func(context.Context) (time.Duration, error) { return 0, nil }
	})
	refuses("TLS for the listener, and nothing said of the hop", "new curator", func(cfg *curator.Config) { cfg.Listeners[0].Credentials = insecure.NewCredentials() })
	refuses("TLS for the listener, an option for the hop, and no credentials", "new curator", func(cfg *curator.Config) {
		cfg.Listeners[0].Credentials, cfg.PeerOptions = insecure.NewCredentials(), []grpc.DialOption{grpc.WithDisableRetry()}
	})
	refuses("a local service twice", "new curator", register(&kvpb.KV_ServiceDesc, &kvpb.KV_ServiceDesc))
	for _, bad := range badNames {
		refuses(bad.what, "new elector", func(cfg *curator.Config) { cfg.Elector.Election = bad.name })
	}
	refuses("an election that is not UTF-8", "new curator", func(cfg *curator.Config) { cfg.Elector.Election = "\xff" })
	refuses("no node ID", "new elector", func(cfg *curator.Config) { cfg.Elector.NodeID = "" })
	refuses("no source", "new elector", func(cfg *curator.Config) { cfg.Elector.Source = nil })
	idle, err := curator.New(good())
	require.NoError(t, err)
	ran := st.serve("ran", never)
	s.rows = append(s.rows,
		row{tried: "`Run`: no context", op: "run curator", election: st.Election, want: errInvalid, try: func() error { return idle.Run(absent) }},
		row{tried: "`Run` a second time", op: "run curator", election: st.Election, want: []error{eldest.ErrClosed}, try: func() error {
			return ran.Run(st.Ctx)
		}},
	)
	return s
}
