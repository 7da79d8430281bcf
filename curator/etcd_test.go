package curator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// member is a curator that stands in a real election and serves a script.
type member struct {
	*Curator
	t    testing.TB
	id   string
	etcd *clientv3.Client
	conn *grpc.ClientConn
	stop context.CancelCauseFunc
	done chan error
}

// scripted makes the tenure's service: the node and the token that serve.
func scripted(id string) func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error {
	return func(_ context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
		r.RegisterService(describe("test.Script"), &script{unary: func(context.Context, *message) (*message, error) {
			return wrapperspb.Bytes([]byte(fmt.Sprintf("%s %d", id, l.Token()))), nil
		}, stream: echoes})
		return nil
	}
}

// run starts a member, which is stopped with the test.
func run(t testing.TB, election, id string, change ...func(*Config)) *member {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &member{t: t, id: id, etcd: etcdtest.Shared(t).Client(t), done: make(chan error, 1)}
	cfg := Config{
		Elector: elector.Config{
			Election: election, NodeID: id, Source: elector.Always(elector.Client(m.etcd)),
			Session: lease.Config{TTL: time.Minute}, // a busy machine costs nobody the lease
			Backoff: func(int) time.Duration { return 10 * time.Millisecond },
		},
		Listener: listener, Services: scripted(id), Wait: etcdtest.Patience,
	}
	for _, f := range change {
		f(&cfg)
	}
	m.Curator, err = New(cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancelCause(context.Background())
	m.stop = stop
	go func() { m.done <- m.Run(ctx) }()
	m.conn = dialTo(t, listener.Addr().String())
	t.Cleanup(func() {
		_ = m.end(nil)
		require.NoError(t, m.conn.Close())
	})
	return m
}

// end stops the member and returns what Run returned.
func (m *member) end(cause error) error {
	m.t.Helper()
	m.stop(cause)
	err := etcdtest.Take(m.t, m.done, "the end of Run")
	m.done <- err
	return err
}

func (m *member) becomes(role elector.Role) elector.Status {
	m.t.Helper()
	s, err := m.Watch().NextWhere(etcdtest.Context(m.t), func(s elector.Status) bool { return s.Role() == role })
	require.NoError(m.t, err, "%s is not %v: %v", m.id, role, m.Status())
	return s
}

// leadsAfter waits for a tenure later than one.
func (m *member) leadsAfter(token eldest.Token) {
	m.t.Helper()
	_, err := m.Watch().NextWhere(etcdtest.Context(m.t), func(s elector.Status) bool {
		_, next, ok := s.Own()
		return ok && next > token
	})
	require.NoError(m.t, err)
}

func (m *member) unary(ctx context.Context) (string, error) {
	var out message
	err := m.conn.Invoke(ctx, unaryMethod, &message{}, &out)
	return string(out.GetValue()), err
}

// depose deletes the key of a member that leads.
func (m *member) depose() {
	m.t.Helper()
	key, _, ok := m.becomes(elector.Leading).Own()
	require.True(m.t, ok)
	_, err := m.etcd.Delete(etcdtest.Context(m.t), key)
	require.NoError(m.t, err)
}

// Row 43: of three nodes any answers like the leader, from the first moment on, and
// goes on to when leadership moves.
func TestRequirement43AnyOfThree(t *testing.T) {
	election := electionOf(t)
	a, b := run(t, election, "a"), run(t, election, "b")
	answers := func(of ...*member) string {
		t.Helper()
		var said string
		for i, m := range of {
			out, err := m.unary(etcdtest.Context(t)) // waits until somebody leads
			require.NoError(t, err, m.id)
			if i == 0 {
				said = out
			}
			require.Equal(t, said, out, m.id)
		}
		return said
	}
	answers(a, b)
	c := run(t, election, "c")
	leader, others := a, []*member{b, c}
	if b.Status().Role() == elector.Leading {
		leader, others = b, []*member{a, c}
	}
	for _, m := range others {
		m.becomes(elector.Following)
	}
	_, token, _ := leader.becomes(elector.Leading).Own()
	require.Equal(t, fmt.Sprintf("%s %d", leader.id, token), answers(a, b, c))
	w := httptest.NewRecorder()
	leader.RoleHandler(elector.Leading).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), leader.cfg.Listener.Addr().String(), "the listener's address is what others are told")

	cause := errors.New("enough")
	require.ErrorIs(t, leader.end(cause), cause)
	answers(others...)
}

// Row 41: each tenure has a service and a background function of its own, with its own
// token, and those of the last one have ended before the next ones begin.
func TestRequirement41FreshForEachTenure(t *testing.T) {
	var mu sync.Mutex
	var tokens []eldest.Token
	var running atomic.Int64
	m := run(t, electionOf(t), "n", func(cfg *Config) {
		cfg.Services = func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			if running.Load() != 0 {
				t.Error("the last tenure still runs")
			}
			mu.Lock()
			tokens = append(tokens, l.Token())
			mu.Unlock()
			calls := 0 // a state that must not outlive its tenure
			r.RegisterService(describe("test.Script"), &script{unary: func(context.Context, *message) (*message, error) {
				calls++
				return wrapperspb.Bytes([]byte(fmt.Sprint(calls))), nil
			}, stream: func(stream grpc.ServerStream) error {
				running.Add(1)
				defer running.Add(-1)
				_ = replies(stream, "begun")
				<-stream.Context().Done()
				return stream.Context().Err()
			}})
			return ctx.Err()
		}
		cfg.Background = func(ctx context.Context, _ *elector.Leadership) error {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		}
	})
	const tenures = 5
	for range tenures {
		out, err := m.unary(etcdtest.Context(t))
		require.NoError(t, err)
		require.Equal(t, "1", out)
		stream, err := m.conn.NewStream(etcdtest.Context(t), anyStream, bidiMethod)
		require.NoError(t, err)
		require.NoError(t, stream.RecvMsg(&message{}))
		_, token, _ := m.becomes(elector.Leading).Own()
		m.depose()
		err = stream.RecvMsg(&message{})
		require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
		m.leadsAfter(token)
	}
	mu.Lock()
	defer mu.Unlock()
	require.GreaterOrEqual(t, len(tokens), tenures)
	for i := range tokens[1:] {
		require.Greater(t, tokens[i+1], tokens[i], "G2")
	}
}

// Row 45: the guard of a tenure that etcd has ended refuses, before this node has heard
// of the end, and the caller is told to try again; nothing was written.
func TestRequirement45GuardRefusesOnEtcd(t *testing.T) {
	election := electionOf(t)
	data := "data of " + election
	m := run(t, election, "n", func(cfg *Config) {
		cfg.Services = func(_ context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			r.RegisterService(describe("test.Script"), &script{unary: func(ctx context.Context, in *message) (*message, error) {
				if string(in.GetValue()) == "depose" {
					if _, err := l.KV().Get(ctx, data); err != nil {
						return nil, err
					}
					admin := etcdtest.Shared(t).Client(t)
					if _, err := admin.Delete(ctx, l.Key()); err != nil {
						return nil, err
					}
				}
				_, err := l.Txn(context.WithoutCancel(ctx)).Then(clientv3.OpPut(data, string(in.GetValue()))).Commit()
				return in, err
			}})
			return nil
		}
	})
	write := func(value string) error {
		return m.conn.Invoke(etcdtest.Context(t), unaryMethod, wrapperspb.Bytes([]byte(value)), &message{})
	}
	require.NoError(t, write("first"))
	_, token, _ := m.becomes(elector.Leading).Own()
	err := write("depose")
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "can be retried")
	got, err := m.etcd.Get(etcdtest.Context(t), data)
	require.NoError(t, err)
	require.Equal(t, "first", string(got.Kvs[0].Value))
	m.leadsAfter(token)
	require.NoError(t, write("last"))
	_, err = m.etcd.Delete(etcdtest.Context(t), data)
	require.NoError(t, err)
}

// A graceful end: first nobody new, then what is under way with leadership still held,
// then leadership, then the server.
func TestShutdownOfALeader(t *testing.T) {
	election := electionOf(t)
	began, release := make(chan struct{}), make(chan struct{})
	released := sync.OnceFunc(func() { close(release) })
	defer released()
	var held atomic.Bool
	a := run(t, election, "a", func(cfg *Config) {
		cfg.Grace = etcdtest.Patience
		cfg.Services = func(_ context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			r.RegisterService(describe("test.Script"), &script{unary: func(ctx context.Context, in *message) (*message, error) {
				close(began)
				<-release
				held.Store(l.Holds(0) && ctx.Err() == nil)
				return in, nil
			}, stream: echoes})
			return nil
		}
	})
	a.becomes(elector.Leading)
	// The answer of a's that is under way may come to b after the news that b leads.
	b := run(t, election, "b", func(cfg *Config) { cfg.Grace = etcdtest.Patience })
	b.becomes(elector.Following)
	underway := asking(func() error { _, err := b.unary(etcdtest.Context(t)); return err })
	etcdtest.Take(t, began, "the handler")
	leaders, err := b.conn.NewStream(etcdtest.Context(t), anyStream, bidiMethod)
	require.NoError(t, err)
	require.NoError(t, leaders.SendMsg(wrapperspb.Bytes([]byte("stream"))))
	require.NoError(t, leaders.RecvMsg(&message{}))

	cause := errors.New("enough")
	a.stop(cause)
	_, err = a.front.router.Reader().NextWhere(etcdtest.Context(t), func(r *route) bool { return r.tenure == nil })
	require.NoError(t, err)
	late := asking(func() error { _, err := a.unary(etcdtest.Context(t)); return err })
	etcdtest.Eventually(t, func() bool { calls, _ := a.front.lobby.load(); return calls == 1 || len(late) == 1 }, "a call that has not begun waits")
	require.Empty(t, late, "a call that has not begun is refused")
	require.Equal(t, elector.Leading, a.Status().Role())
	released()
	require.NoError(t, etcdtest.Take(t, underway, "the call that was under way"))
	require.NoError(t, etcdtest.Take(t, late, "the call that came late: the next leader's"))
	require.True(t, held.Load(), "leadership was given up under the handler")
	require.Equal(t, codes.Unavailable, status.Code(leaders.RecvMsg(&message{})))
	err = a.end(cause)
	require.ErrorIs(t, err, cause)
	var op *eldest.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, election, op.Election)
	require.Equal(t, elector.Neither, a.Status().Role())
	_, err = a.unary(etcdtest.Context(t))
	require.Equal(t, codes.Unavailable, status.Code(err), "nobody listens")
	out, err := b.unary(etcdtest.Context(t))
	require.NoError(t, err)
	require.Contains(t, out, "b ")
	require.ErrorIs(t, a.Run(context.Background()), eldest.ErrClosed)
}

// When the background function returns leadership is given up, and somebody else leads;
// what was under way may finish before.
func TestBackgroundReturns(t *testing.T) {
	election := electionOf(t)
	enough, began, release := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	a := run(t, election, "a", func(cfg *Config) {
		cfg.Grace = etcdtest.Patience
		cfg.Elector.Backoff = func(int) time.Duration { return time.Hour } // it stays neither, with the reason
		cfg.Services = func(_ context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
			r.RegisterService(describe("test.Script"), &script{unary: func(ctx context.Context, in *message) (*message, error) {
				began <- struct{}{}
				<-release
				if err := ctx.Err(); err != nil || !l.Holds(0) {
					return nil, fmt.Errorf("the tenure has ended: %w", err)
				}
				return in, nil
			}})
			return nil
		}
		cfg.Background = func(ctx context.Context, _ *elector.Leadership) error {
			select {
			case <-enough:
				return errors.New("that will do")
			case <-ctx.Done():
				return nil
			}
		}
	})
	a.becomes(elector.Leading)
	b := run(t, election, "b")
	b.becomes(elector.Following)
	watch := a.Watch()
	underway := asking(func() error { _, err := a.unary(etcdtest.Context(t)); return err })
	etcdtest.Take(t, began, "the handler")
	close(enough)
	_, err := a.front.router.Reader().NextWhere(etcdtest.Context(t), func(r *route) bool { return r.reason != nil })
	require.NoError(t, err)
	close(release)
	require.NoError(t, etcdtest.Take(t, underway, "the call that was under way"))
	s, err := watch.NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == elector.Neither })
	require.NoError(t, err)
	require.ErrorIs(t, s.Reason(), eldest.ErrResigned)
	require.ErrorContains(t, s.Reason(), "that will do")
	b.becomes(elector.Leading)
	out, err := b.unary(etcdtest.Context(t))
	require.NoError(t, err)
	require.Contains(t, out, "b ")
}

// What cannot be served ends the tenure, with the reason: at the beginning, and later.
func TestServicesThatCannotBeServed(t *testing.T) {
	for name, services := range map[string]func(grpc.ServiceRegistrar){
		"twice": func(r grpc.ServiceRegistrar) {
			r.RegisterService(describe("test.Script"), &script{})
			r.RegisterService(describe("test.Script"), &script{})
		},
		"local": func(r grpc.ServiceRegistrar) { r.RegisterService(describe("grpc.health.v1.Health"), &script{}) },
		"late":  func(r grpc.ServiceRegistrar) { go r.RegisterService(describe(""), &script{}) },
	} {
		t.Run(name, func(t *testing.T) {
			m := run(t, electionOf(t), "n", func(cfg *Config) {
				cfg.Services = func(_ context.Context, _ *elector.Leadership, r grpc.ServiceRegistrar) error {
					services(r)
					return nil
				}
				cfg.Elector.Backoff = func(int) time.Duration { return time.Hour }
			})
			s, err := m.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return errors.Is(s.Reason(), eldest.ErrInvalid) })
			require.NoError(t, err)
			var op *eldest.OpError
			require.ErrorAs(t, s.Reason(), &op)
			_, err = m.unary(etcdtest.ContextFor(t, 100*time.Millisecond))
			require.Equal(t, codes.DeadlineExceeded, status.Code(err), "calls wait for a leader")
		})
	}
	m := run(t, electionOf(t), "n", func(cfg *Config) {
		cfg.Services = func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error { return errDeposed }
	})
	_, err := m.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return errors.Is(s.Reason(), errDeposed) })
	require.NoError(t, err)
}

// A listener that fails ends Run, with leadership given up.
func TestListenerFails(t *testing.T) {
	m := run(t, electionOf(t), "n")
	m.becomes(elector.Leading)
	require.NoError(t, m.cfg.Listener.Close())
	err := etcdtest.Take(t, m.done, "the end of Run")
	m.done <- err
	require.ErrorIs(t, err, net.ErrClosed)
	require.Equal(t, elector.Neither, m.Status().Role())
}

// A leader that does not say where it is cannot be forwarded to: calls wait.
func TestLeaderWithoutAnAddress(t *testing.T) {
	election := electionOf(t)
	e, err := elector.New(elector.Config{Election: election, NodeID: "silent", Source: elector.Always(elector.Client(etcdtest.Shared(t).Client(t)))})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := asking(func() error {
		return e.Run(ctx, func(ctx context.Context, _ *elector.Leadership) error { <-ctx.Done(); return nil })
	})
	_, err = e.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == elector.Leading })
	require.NoError(t, err)
	m := run(t, election, "n")
	m.becomes(elector.Following)
	unary := asking(func() error { _, err := m.unary(etcdtest.Context(t)); return err })
	_, err = m.front.router.Reader().NextWhere(etcdtest.Context(t), func(r *route) bool {
		return r.reason != nil && errors.Is(r.reason, eldest.ErrNoLeader)
	})
	require.NoError(t, err)
	stop()
	require.ErrorIs(t, etcdtest.Take(t, done, "the end of the silent one"), context.Canceled)
	require.NoError(t, etcdtest.Take(t, unary, "an answer by the next leader"))
}

// Row 45: a leader is killed, as its follower sees it, and its lease expires. The calls
// that were in flight there are told; all others are answered, after a while.
func TestRequirement45LeaderIsKilled(t *testing.T) {
	t.Parallel()
	election := electionOf(t)
	host := etcdtest.Shared(t).Host(t)
	began := make(chan struct{}, 1)
	a := run(t, election, "a", func(cfg *Config) {
		cfg.Elector.Session.TTL = 6 * time.Second // the shortest one that is no matter of the machine's
		cfg.Elector.Source = elector.Always(elector.Client(host.Client(t)))
		cfg.Services = func(_ context.Context, _ *elector.Leadership, r grpc.ServiceRegistrar) error {
			r.RegisterService(describe("test.Script"), &script{unary: func(ctx context.Context, in *message) (*message, error) {
				if len(in.GetValue()) > 0 {
					began <- struct{}{}
					<-ctx.Done()
				}
				return wrapperspb.Bytes([]byte("a")), ctx.Err()
			}})
			return nil
		}
	})
	a.becomes(elector.Leading)
	var way network
	b := run(t, election, "b", way.join)
	b.becomes(elector.Following)
	out, err := b.unary(etcdtest.Context(t))
	require.NoError(t, err)
	require.Equal(t, "a", out)
	inFlight := asking(func() error {
		return b.conn.Invoke(etcdtest.Context(t), unaryMethod, wrapperspb.Bytes([]byte("wait")), &message{})
	})
	etcdtest.Take(t, began, "the handler")

	way.gone.Store(true)
	way.cut()
	host.Cut()
	err = etcdtest.Take(t, inFlight, "the call in flight")
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	for calls := 0; out != "b"; calls++ {
		out, err = b.unary(etcdtest.Context(t))
		require.NoError(t, err)
		out = out[:1]
		require.Less(t, calls, 3, "who answered?")
	}
	host.Mend()
	a.becomes(elector.Following)
}
