package curator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// says requires an answer of the leader's unary handler, and returns it.
func (m *member) says() string {
	m.t.Helper()
	out, err := m.unary(etcdtest.Context(m.t), "") // waits until a node leads
	require.NoError(m.t, err, m.cfg.Elector.NodeID)
	return out
}

// Row 43: each of three nodes answers like the leader, from the first moment on, and also after
// leadership moves.
func TestRequirement43AnyOfThree(t *testing.T) {
	election := etcdtest.Election(t)
	a, b := run(t, election, "a"), run(t, election, "b")
	require.Equal(t, a.says(), b.says())
	c := run(t, election, "c")
	leader, others := a, []*member{b, c}
	if b.Status().Role() == elector.Leading {
		leader, others = b, []*member{a, c}
	}
	for _, m := range others {
		m.becomes(elector.Following)
	}
	_, token, _ := leader.becomes(elector.Leading).Own()
	for _, m := range []*member{a, b, c} {
		require.Equal(t, fmt.Sprintf("%s %d", leader.cfg.Elector.NodeID, token), m.says())
	}
	cause := errors.New("enough")
	require.ErrorIs(t, leader.end(cause), cause)
	require.Equal(t, others[0].says(), others[1].says())
}

// Row 41: each tenure has its own service and background function, with its own token. Those of the
// last tenure have ended before the next ones begin.
func TestRequirement41FreshForEachTenure(t *testing.T) {
	var mu sync.Mutex
	var tokens []eldest.Token
	var running atomic.Int64
	m := run(t, etcdtest.Election(t), "n", func(cfg *Config) {
		cfg.Services = serving(func(l *elector.Leadership) *script {
			if running.Load() != 0 {
				t.Error("the last tenure still runs")
			}
			mu.Lock()
			tokens = append(tokens, l.Token())
			mu.Unlock()
			calls := 0 // a state that must not outlive its tenure
			return &script{unary: func(context.Context, *message) (*message, error) {
				calls++
				return wrapperspb.Bytes([]byte(fmt.Sprint(calls))), nil
			}, stream: func(stream grpc.ServerStream) error {
				running.Add(1)
				defer running.Add(-1)
				_ = replies(stream, "begun")
				<-stream.Context().Done()
				return stream.Context().Err()
			}}
		})
		cfg.Background = func(ctx context.Context, _ *elector.Leadership) error {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		}
	})
	const tenures = 3
	for range tenures {
		require.Equal(t, "1", m.says())
		stream := m.open(bidiMethod)
		stream.expect("begun")
		_, token, _ := m.becomes(elector.Leading).Own()
		m.depose()
		requireCode(t, codes.Unavailable, stream.end())
		m.leadsAfter(token)
	}
	mu.Lock()
	defer mu.Unlock()
	require.GreaterOrEqual(t, len(tokens), tenures)
	for i := range tokens[1:] {
		require.Greater(t, tokens[i+1], tokens[i], "G2")
	}
}

// Row 45: the guard of a tenure that etcd has ended refuses, before this node is notified of the
// end. The caller receives that the request can be retried; nothing was written.
func TestRequirement45GuardRefusesOnEtcd(t *testing.T) {
	election := etcdtest.Election(t)
	data := "data of " + election
	m := run(t, election, "n", func(cfg *Config) {
		cfg.Services = serving(func(l *elector.Leadership) *script {
			return &script{unary: func(ctx context.Context, in *message) (*message, error) {
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
			}}
		})
	})
	m.answers("first")
	_, token, _ := m.becomes(elector.Leading).Own()
	requireCode(t, codes.Unavailable, m.call("depose"), "can be retried")
	got, err := m.etcd.Get(etcdtest.Context(t), data)
	require.NoError(t, err)
	require.Equal(t, "first", string(got.Kvs[0].Value))
	m.leadsAfter(token)
	m.answers("last")
	_, err = m.etcd.Delete(etcdtest.Context(t), data)
	require.NoError(t, err)
}

// leading is a script whose unary handler reports that it began. When it is released it reports
// whether the tenure still holds.
func leading(began, release chan struct{}) func(l *elector.Leadership) *script {
	return func(l *elector.Leadership) *script {
		return &script{unary: func(ctx context.Context, in *message) (*message, error) {
			began <- struct{}{}
			<-release
			if err := ctx.Err(); err != nil || !l.Holds(0) {
				return nil, fmt.Errorf("the tenure has ended: %w", err)
			}
			return in, nil
		}, stream: echoes}
	}
}

// A graceful end: first no new calls, then the end of the calls under way while leadership is still
// held, then leadership is given up, then the server is closed.
func TestShutdownOfALeader(t *testing.T) {
	election := etcdtest.Election(t)
	began, release := make(chan struct{}, 9), make(chan struct{})
	released := sync.OnceFunc(func() { close(release) })
	defer released()
	a := run(t, election, "a", patient, func(cfg *Config) { cfg.Services = serving(leading(began, release)) })
	a.becomes(elector.Leading)
	// The answer of a to the call under way may arrive at b after b's status says that b leads.
	b := run(t, election, "b", patient)
	b.becomes(elector.Following)
	underway := b.ask("")
	etcdtest.Take(t, began, "the handler")
	stream := b.open(bidiMethod)
	stream.send("stream")
	stream.expect("stream")

	cause := errors.New("enough")
	a.stop(cause)
	a.routed(func(r *route) bool { return r.Tenure == nil })
	late := asking(func() error { return a.call("") })
	etcdtest.Eventually(t, func() bool { return a.backlog.load().calls == 1 || len(late) == 1 }, "a call that has not begun waits")
	require.Empty(t, late, "a call that has not begun is refused")
	require.Equal(t, elector.Leading, a.Status().Role())
	released()
	require.NoError(t, etcdtest.Take(t, underway, "the call that was under way"))
	require.NoError(t, etcdtest.Take(t, late, "the call that came late: the next leader's"))
	requireCode(t, codes.Unavailable, stream.end())
	err := a.end(cause)
	require.ErrorIs(t, err, cause)
	var op *eldest.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, election, op.Election)
	require.Equal(t, elector.Unknown, a.Status().Role())
	requireCode(t, codes.Unavailable, a.call("")) // no server listens
	require.Contains(t, b.says(), "b ")
	require.ErrorIs(t, a.Run(context.Background()), eldest.ErrClosed)
}

// When the background function returns, leadership is given up, and another node leads. Calls under
// way may finish before.
func TestBackgroundReturns(t *testing.T) {
	election := etcdtest.Election(t)
	enough, began, release := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	a := run(t, election, "a", patient, once, func(cfg *Config) {
		cfg.Services = serving(leading(began, release))
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
	underway := a.ask("")
	etcdtest.Take(t, began, "the handler")
	close(enough)
	a.routed(func(r *route) bool { return r.Reason != nil })
	close(release)
	require.NoError(t, etcdtest.Take(t, underway, "the call that was under way"))
	s := a.is(func(s elector.Status) bool { return errors.Is(s.Reason(), eldest.ErrResigned) })
	require.ErrorContains(t, s.Reason(), "that will do")
	b.becomes(elector.Leading)
	require.Contains(t, b.says(), "b ")
}

// once lets a node campaign only once: then its role stays unknown, with the reason.
func once(cfg *Config) { cfg.Elector.Backoff = func(int) time.Duration { return time.Hour } }

// A service that cannot be served ends the tenure, with the reason: at the beginning, and later.
func TestServicesThatCannotBeServed(t *testing.T) {
	refused := fmt.Errorf("%w: no", eldest.ErrInvalid)
	for name, services := range map[string]func(r grpc.ServiceRegistrar) error{
		"twice": func(r grpc.ServiceRegistrar) error {
			r.RegisterService(describe("test.Script"), echoing)
			r.RegisterService(describe("test.Script"), echoing)
			return nil
		},
		"late":  func(r grpc.ServiceRegistrar) error { go r.RegisterService(nil, nil); return nil },
		"error": func(grpc.ServiceRegistrar) error { return refused },
	} {
		m := run(t, etcdtest.Election(t), "n", once, func(cfg *Config) {
			cfg.Services = func(_ context.Context, _ *elector.Leadership, r grpc.ServiceRegistrar) error { return services(r) }
		})
		s := m.is(func(s elector.Status) bool { return errors.Is(s.Reason(), eldest.ErrInvalid) })
		var op *eldest.OpError
		require.ErrorAs(t, s.Reason(), &op, name)
		m.routed(func(r *route) bool { return errors.Is(r.Why(), eldest.ErrInvalid) }) // calls wait for a leader
	}
}

// Calls are not forwarded to a leader without an address, or to a leader whose instance is this
// process: they wait for another leader.
func TestLeadersThatAreNotForwardedTo(t *testing.T) {
	n := newNode(t, "n", waits(20*time.Millisecond))
	nowhere := n.as(7)
	nowhere.Instance, nowhere.Address = "another", ""
	for reason, leader := range map[string]elector.Leader{"the leader is this node": n.as(7), "it has no address": nowhere} {
		n.router.Follow(leader)
		n.untouched(reason)
	}
	n.leads(8, echoing)
	n.answers("")
}

// Row 45: a leader is killed, as its follower sees it, and its lease expires. The calls that were
// in flight there fail with UNAVAILABLE; all others are answered, after a while.
func TestRequirement45LeaderIsKilled(t *testing.T) {
	t.Parallel()
	election := etcdtest.Election(t)
	host := etcdtest.Shared(t).Host(t)
	began := make(chan struct{}, 1)
	a := run(t, election, "a", func(cfg *Config) {
		cfg.Elector.Session.TTL = 6 * time.Second // the shortest TTL that a slow machine does not affect
		cfg.Elector.Source = elector.Always(elector.Client(host.Client(t)))
		cfg.Services = serving(func(*elector.Leadership) *script {
			return &script{unary: func(ctx context.Context, in *message) (*message, error) {
				if len(in.GetValue()) > 0 {
					began <- struct{}{}
					<-ctx.Done()
				}
				return wrapperspb.Bytes([]byte("a")), ctx.Err()
			}}
		})
	})
	a.becomes(elector.Leading)
	var way network
	b := run(t, election, "b", way.join)
	b.becomes(elector.Following)
	require.Equal(t, "a", b.says())
	inFlight := b.ask("wait")
	etcdtest.Take(t, began, "the handler")

	way.gone.Store(true)
	way.cut()
	host.Cut()
	requireCode(t, codes.Unavailable, etcdtest.Take(t, inFlight, "the call in flight"))
	require.Contains(t, b.says(), "b ")
	host.Mend()
	a.becomes(elector.Following)
}

// While the tenure of a service is suspended no call is served: new calls wait. Then they are
// answered in the same tenure, by whichever node they came to.
//
// Fails when a suspended leader serves, and when a follower waits for another token.
func TestSuspendedServiceGoesOn(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	beating := func(cfg *Config) {
		cfg.Elector.Source = elector.Always(elector.Client(cluster.Client(t)))
		cfg.Elector.Session.Heartbeat = lease.Heartbeat{Timeout: time.Second}
	}
	election := etcdtest.Election(t)
	leader := run(t, election, "leader", beating)
	_, token, _ := leader.becomes(elector.Leading).Own()
	follower := run(t, election, "follower", beating)
	follower.becomes(elector.Following)
	for range 2 {
		require.NoError(t, cluster.Member(0).Stop())
		require.ErrorIs(t, leader.becomes(elector.Unknown).Reason(), eldest.ErrSuspended)
		said := make(chan string, 2)
		for _, m := range []*member{leader, follower} {
			go func() {
				out, err := m.unary(etcdtest.Context(t), "")
				said <- fmt.Sprint(out, err)
			}()
		}
		time.Sleep(1500 * time.Millisecond)
		require.Empty(t, said, "nobody leads")
		require.NoError(t, cluster.Member(0).Cont())
		for range 2 {
			require.Equal(t, fmt.Sprintf("leader %d<nil>", token), etcdtest.Take(t, said, "an answer"))
		}
		_, again, _ := leader.becomes(elector.Leading).Own()
		require.Equal(t, token, again)
	}
}
