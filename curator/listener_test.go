package curator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// socket listens on a Unix socket. Its path is short: the system allows about a hundred bytes.
func socket(t testing.TB) net.Listener {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// beside gives a node a Unix socket in front of its other listeners.
func beside(t testing.TB) func(*Config) {
	return func(cfg *Config) { cfg.Listeners = append([]Listener{{Listener: socket(t)}}, cfg.Listeners...) }
}

// over is the node, called over a new connection to its Unix socket.
func (n *node) over() *node {
	return &node{t: n.t, conn: dialTo(n.t, "unix://"+n.cfg.Listeners[0].Addr().String())}
}

// Each listener has its own credentials, and its callers are answered by the leader whichever node
// and listener they call. Other nodes dial the TCP listener, although the Unix socket is the first.
// A caller over the socket is nobody, and a hop that it claims is not believed.
func TestSeveralListeners(t *testing.T) {
	for name, verify := range map[string]func(context.Context, string) error{"default": nil, "NodeCertificate": NodeCertificate} {
		t.Run(name, func(t *testing.T) {
			election, a := etcdtest.Election(t), newAuthority(t)
			var w callRecorder
			start := func(id string) *member {
				return run(t, election, id, a.secure(id), beside(t), func(cfg *Config) {
					cfg.VerifyHop = verify
					cfg.Services = serving(func(*elector.Leadership) *script { return w.script("handler") })
				})
			}
			leader := start("leader")
			_, token, _ := leader.becomes(elector.Leading).Own()
			follower := start("follower")
			to, _ := follower.becomes(elector.Following).Leader()
			require.Equal(t, leader.cfg.Listeners[1].Addr().String(), to.Address)
			alice := a.Issue("alice")
			hop := fmt.Sprintf(" by follower in %d", token)
			for _, way := range []struct {
				from *node
				want string
			}{
				{a.from(leader.node, alice), "alice"}, {a.from(follower.node, alice), "alice" + hop},
				{leader.over(), "nobody"}, {follower.over(), "nobody" + hop},
			} {
				require.Equal(t, []string{"handler: " + way.want}, w.saw(func() { way.from.answers("") }))
			}
			requireCode(t, codes.Unavailable, (&node{t: t, conn: dialTo(t, leader.address)}).call("")) // plain text at the TLS listener

			ctx := claiming(etcdtest.Context(t), "follower", fmt.Sprint(token))
			var err error
			saw := w.saw(func() { _, err = leader.over().unary(ctx, "") })
			if verify != nil {
				requireCode(t, codes.PermissionDenied, err, "without TLS")
				require.Empty(t, saw)
			} else {
				require.NoError(t, err)
				require.Equal(t, []string{"handler: nobody"}, saw, "the hop is believed")
			}
		})
	}
}

// What is bounded is bounded over all listeners: waiting calls, each connection of a Unix socket
// being a caller of its own, and the end of Run, which ends the calls of all listeners and closes
// them. If one listener fails, Run ends.
func TestBoundsHoldOverAllListeners(t *testing.T) {
	t.Parallel()
	never := func(cfg *Config) {
		cfg.MaxWaiting = 2
		cfg.Elector.Source = func(ctx context.Context) (elector.Clients, error) {
			<-ctx.Done()
			return elector.Clients{}, ctx.Err()
		}
	}
	m := run(t, "test", "n", never, beside(t))
	first := m.over()
	waits := first.ask("")
	m.holds(1, "it waits")
	requireCode(t, codes.ResourceExhausted, first.call(""), "too many calls are waiting")
	second := m.over().ask("")
	m.holds(2, "another connection to the socket is another caller")
	requireCode(t, codes.ResourceExhausted, m.call(""), "too many calls are waiting")
	require.ErrorIs(t, m.end(context.Canceled), context.Canceled)
	requireRetry(t, etcdtest.Take(t, waits, "its answer"))
	requireRetry(t, etcdtest.Take(t, second, "its answer"))

	election := etcdtest.Election(t)
	for failing := range 2 {
		s, began := waiting()
		m := run(t, election, "n", beside(t), func(cfg *Config) {
			cfg.Services = serving(func(*elector.Leadership) *script { return s })
		})
		m.becomes(elector.Leading)
		streams := []*flow{m.open(bidiMethod), m.over().open(bidiMethod)}
		for range streams {
			etcdtest.Take(t, began, "a handler")
		}
		require.NoError(t, m.cfg.Listeners[failing].Close())
		for _, stream := range streams {
			requireCode(t, codes.Unavailable, stream.end())
		}
		err := m.end(nil)
		require.ErrorIs(t, err, net.ErrClosed)
		require.Equal(t, elector.Unknown, m.Status().Role())
		require.ErrorContains(t, err, m.cfg.Listeners[failing].Addr().String())
		for _, l := range m.cfg.Listeners {
			_, err := l.Accept()
			require.ErrorIs(t, err, net.ErrClosed, "it is still open")
		}
	}
}

// Listeners whose type can be compared, but not their content, are accepted.
func TestListenersThatCannotBeCompared(t *testing.T) {
	type wrapped struct {
		labels any
		net.Listener
	}
	cfg := Config{Listeners: []Listener{
		{Listener: wrapped{[]string{"a"}, listen(t)}}, {Listener: wrapped{[]string{"b"}, listen(t)}},
	}}
	require.NoError(t, cfg.checkListeners())
}

// The address that other nodes dial is that of the first listener that is not a Unix socket; if all
// are, of the first one, by its absolute path. A local service is served at all listeners.
func TestDefaultAddress(t *testing.T) {
	first, second := listen(t), listen(t)
	sockets := []net.Listener{socket(t), socket(t)}
	t.Chdir(t.TempDir())
	relative, err := net.Listen("unix", "here")
	require.NoError(t, err)
	t.Cleanup(func() { _ = relative.Close() })
	for _, tc := range []struct {
		on   []net.Listener
		want string
	}{
		{[]net.Listener{first, second}, first.Addr().String()},
		{[]net.Listener{sockets[0], second, first}, second.Addr().String()},
		{sockets, "unix://" + sockets[0].Addr().String()},
		{[]net.Listener{relative}, ""},
	} {
		var cfg Config
		for _, l := range tc.on {
			cfg.Listeners = append(cfg.Listeners, Listener{Listener: l})
		}
		got, err := cfg.reachable()
		require.Equal(t, tc.want == "", errors.Is(err, eldest.ErrInvalid), "%v", err)
		require.Equal(t, tc.want, got)
	}
	n := newNode(t, "n", beside(t), func(cfg *Config) {
		cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Local"), echoing) }
	})
	for _, from := range []*node{n, n.over()} {
		require.NoError(t, from.conn.Invoke(etcdtest.Context(t), "/test.Local/Unary", &message{}, &message{}))
	}
}
