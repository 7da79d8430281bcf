package curator

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Names that a local service cannot have are refused by New. All other bad input is in tests/badinput.
func TestBadLocalServices(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close(), "New has not touched it") }()
	for _, name := range []string{"eldest.curator.v1.Curator", "grpc.health.v1.Health", ""} {
		cfg := Config{
			Elector:  elector.Config{Election: "test", NodeID: "n", Source: elector.Always(elector.Clients{})},
			Listener: listener,
			Services: func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
		}
		_, err := New(cfg)
		require.NoError(t, err, name)
		cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe(name), &script{}) }
		c, err := New(cfg)
		require.Nil(t, c, name)
		require.ErrorIs(t, err, eldest.ErrInvalid, name)
		var op *eldest.OpError
		require.ErrorAs(t, err, &op, name)
	}
}

// What cannot be served in a tenure is refused, and nothing of the service is registered.
func TestBadServices(t *testing.T) {
	nothing := describe("test.Nothing")
	nothing.Methods[0].Handler = nil
	silent := describe("test.Silent")
	silent.Streams[0].Handler = nil
	twice := describe("test.Twice")
	twice.Streams[0].StreamName = "Unary"
	strict := describe("test.Strict")
	strict.HandlerType = (*interface{ Missing() })(nil)
	for name, desc := range map[string]*grpc.ServiceDesc{
		"no service":           nil,
		"registered before":    describe("test.Script"),
		"a local one":          describe("test.Local"),
		"no name":              describe(""),
		"no handler":           nothing,
		"no stream handler":    silent,
		"a method twice":       twice,
		"not the service's":    strict,
		"the same, once again": describe("test.Script"),
	} {
		s := newServices(map[string]bool{"test.Local": true}, func(error) { require.Fail(t, "it is not late") })
		s.RegisterService(describe("test.Script"), &script{})
		s.RegisterService(desc, &script{})
		s.RegisterService(describe("test.Fine"), &script{})
		methods, err := s.close()
		require.ErrorIs(t, err, eldest.ErrInvalid, name)
		require.Len(t, methods, 8, name)
	}
	var late error
	s := newServices(nil, func(err error) { late = err })
	_, err := s.close()
	require.NoError(t, err)
	s.RegisterService(describe("test.Script"), &script{})
	require.ErrorIs(t, late, eldest.ErrInvalid)
	require.ErrorContains(t, late, "after Config.Services had returned")
}

// A listener on a path of the file system is one that others on the machine can dial.
func TestUnixListener(t *testing.T) {
	t.Chdir(t.TempDir())
	at := func(path string) *net.UnixListener {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		require.NoError(t, err)
		return listener
	}
	relative := at("here")
	defer func() { require.NoError(t, relative.Close()) }()
	_, err := New(Config{
		Elector:  elector.Config{Election: "test", NodeID: "n", Source: elector.Always(elector.Clients{})},
		Listener: relative,
		Services: func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return nil },
	})
	require.ErrorIs(t, err, eldest.ErrInvalid)

	absolute := at(t.TempDir() + "/there")
	leader := newNode(t, "leader", func(cfg *Config) { cfg.Listener = absolute })
	leader.leads(7, &script{unary: echo})
	follower := newNode(t, "follower")
	to := leader.as(7)
	to.Address = leader.cfg.Elector.Address
	follower.front.router.follow(to)
	_, err = follower.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
}
