package curator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// events collects what the hooks of a node are called with.
type events struct {
	mu  sync.Mutex
	all []CallEvent
}

func (e *events) hooks(cfg *Config) {
	cfg.Hooks = TeeHooks(Hooks{}, Hooks{Answered: func(event CallEvent) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, event)
	}})
}

// next waits for an event, which must be the only one, and forgets it.
func (e *events) next(t *testing.T) CallEvent {
	t.Helper()
	var all []CallEvent
	etcdtest.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		all = e.all
		return len(all) > 0
	}, "an event")
	require.Len(t, all, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
	require.LessOrEqual(t, all[0].Waited, all[0].Took)
	return all[0]
}

// last waits for an event and returns the last of those that there are, and forgets them: of a
// call that is tried again and again the leader is told each time.
func (e *events) last(t *testing.T) CallEvent {
	t.Helper()
	etcdtest.Eventually(t, func() bool { e.mu.Lock(); defer e.mu.Unlock(); return len(e.all) > 0 }, "an event")
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.all[len(e.all)-1]
	e.all = nil
	return last
}

// listened is a node whose hooks are collected.
type listened struct {
	*node
	events *events
}

func newListened(t *testing.T, id string, change ...func(*Config)) listened {
	t.Helper()
	e := &events{}
	return listened{newNode(t, id, append(change, e.hooks)...), e}
}

// listenedPair is a leader with token 7 and a follower.
func listenedPair(t *testing.T, s *script, change ...func(*Config)) (leader, follower listened) {
	t.Helper()
	leader, follower = newListened(t, "leader", change...), newListened(t, "follower", change...)
	leader.leads(7, s)
	follower.front.router.follow(leader.as(7))
	return leader, follower
}

// is asserts what became of a call, without its times.
func (e CallEvent) is(t *testing.T, way Way, code codes.Code, refusal Refusal) {
	t.Helper()
	require.Equal(t, fmt.Sprint(way, code, refusal), fmt.Sprint(e.Way, e.Code, e.Refusal), "what became of the call")
}

// A call that the service answers is told of once at each node that it comes to, with the
// service's code.
func TestHooksOfAnsweredCalls(t *testing.T) {
	leader, follower := listenedPair(t, &script{stream: echoes, unary: func(_ context.Context, in *message) (*message, error) {
		if string(in.GetValue()) == "no" {
			return nil, status.Error(codes.AlreadyExists, "the handler says")
		}
		return in, nil
	}})
	for in, code := range map[string]codes.Code{"yes": codes.OK, "no": codes.AlreadyExists} {
		_, err := leader.unary(etcdtest.Context(t), in)
		require.Equal(t, code, status.Code(err))
		e := leader.events.next(t)
		e.is(t, WayServed, code, 0)
		require.Equal(t, unaryMethod, e.Method)
		require.False(t, e.Hop)
		require.Equal(t, 1, e.Attempts)
		require.Positive(t, e.Took)
		for range 2 { // as one of two pumps, and as one message each way
			_, err = follower.unary(etcdtest.Context(t), in)
			require.Equal(t, code, status.Code(err))
			e = follower.events.next(t)
			e.is(t, WayForwarded, code, 0)
			require.False(t, e.Hop)
			require.Equal(t, 1, e.Attempts)
			e = leader.events.next(t)
			e.is(t, WayServed, code, 0)
			require.True(t, e.Hop)
		}
	}
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	stream.send("hello")
	stream.expect("hello")
	require.Equal(t, Load{Forwarding: 1}, follower.Load(), "this call and no other is under way")
	require.Equal(t, Load{Serving: 1}, leader.Load(), "this call and no other is under way")
	require.NoError(t, stream.CloseSend())
	require.NoError(t, stream.end())
	follower.events.next(t).is(t, WayForwarded, codes.OK, 0)
	leader.events.next(t).is(t, WayServed, codes.OK, 0)
	require.Equal(t, Load{}, follower.Load(), "no call is under way")
	require.Equal(t, Load{}, leader.Load(), "no call is under way")

	err := leader.conn.Invoke(etcdtest.Context(t), "/nobody.Knows/It", &message{}, &message{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	leader.events.next(t).is(t, WayServed, codes.Unimplemented, 0)

	// What every node answers itself is not the elected service.
	err = leader.conn.Invoke(etcdtest.Context(t), "/grpc.health.v1.Health/Check", &message{}, &message{})
	require.Equal(t, codes.OK, status.Code(err))
	err = leader.conn.Invoke(etcdtest.Context(t), "/grpc.health.v1.Health/Nothing", &message{}, &message{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	require.Empty(t, leader.events.all)
}

// Each reason for which a node answers in the service's place is the event's, at the node
// that the caller has called, also where it is the leader that has refused.
func TestHooksOfRefusedCalls(t *testing.T) {
	ending, began := waiting()
	short := func(cfg *Config) { cfg.Wait = 50 * time.Millisecond }
	t.Run("no leader", func(t *testing.T) {
		n := newListened(t, "n", short)
		_, err := n.unary(etcdtest.Context(t), "")
		requireRetry(t, err)
		e := n.events.next(t)
		e.is(t, WayRefused, codes.Unavailable, RefusalNoLeader)
		require.GreaterOrEqual(t, e.Waited, 50*time.Millisecond)
		require.Zero(t, e.Attempts)
	})
	t.Run("no leader in the caller's time", func(t *testing.T) {
		n := newListened(t, "n")
		_, err := n.unary(etcdtest.ContextFor(t, 50*time.Millisecond), "")
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		e := n.events.next(t)
		require.Contains(t, []codes.Code{codes.DeadlineExceeded, codes.Canceled}, e.Code)
		e.is(t, WayRefused, e.Code, RefusalNoLeader)
	})
	t.Run("unreachable", func(t *testing.T) {
		n := newListened(t, "n", func(cfg *Config) { cfg.Wait = time.Second })
		gone := n.as(7)
		gone.NodeID, gone.Instance, gone.Address = "gone", "", etcdtest.Nowhere(t)
		n.front.router.follow(gone)
		for range 2 { // as one of two pumps, and as one message each way
			_, err := n.unary(etcdtest.Context(t), "")
			requireRetry(t, err)
			e := n.events.next(t)
			e.is(t, WayRefused, codes.Unavailable, RefusalUnreachable)
			require.Positive(t, e.Attempts)
			require.GreaterOrEqual(t, e.Waited, 500*time.Millisecond)
			_, err = n.unary(etcdtest.ContextFor(t, 100*time.Millisecond), "")
			require.Equal(t, codes.DeadlineExceeded, status.Code(err))
			e = n.events.next(t)
			e.is(t, WayRefused, e.Code, RefusalUnreachable)
			n.front.router.Now().peer.unary.learn(unaryMethod)
		}
		gone.Token, gone.Address = 8, "no address:\x00"
		n.front.router.follow(gone)
		_, err := n.unary(etcdtest.Context(t), "")
		requireRetry(t, err)
		n.events.next(t).is(t, WayRefused, codes.Unavailable, RefusalUnreachable)
	})
	t.Run("connection lost", func(t *testing.T) {
		var way network
		leader, follower := listenedPair(t, ending, way.join)
		done := asking(func() error { _, err := follower.unary(etcdtest.Context(t), ""); return err })
		etcdtest.Take(t, began, "the handler")
		way.cut()
		requireRetry(t, etcdtest.Take(t, done, "the answer"))
		follower.events.next(t).is(t, WayForwarded, codes.Unavailable, RefusalConnectionLost)
		leader.events.next(t).is(t, WayServed, codes.Canceled, 0) // for the leader it is the caller who went away
	})
	t.Run("tenure ended", func(t *testing.T) {
		leader, follower := listenedPair(t, ending)
		done := asking(func() error { _, err := follower.unary(etcdtest.Context(t), ""); return err })
		etcdtest.Take(t, began, "the handler")
		leader.loses(leader.front.router.Now().tenure, errDeposed)
		requireRetry(t, etcdtest.Take(t, done, "the answer"))
		follower.events.next(t).is(t, WayForwarded, codes.Unavailable, RefusalTenureEnded)
		leader.events.next(t).is(t, WayServed, codes.Unavailable, RefusalTenureEnded)
		// The reason is between the nodes.
		tenure := leader.leads(9, ending)
		follower.front.router.follow(leader.as(9))
		stream := follower.open(etcdtest.Context(t), bidiMethod)
		stream.expect("begun")
		etcdtest.Take(t, began, "the handler")
		leader.loses(tenure, errDeposed)
		requireRetry(t, stream.end())
		for key := range stream.Trailer() {
			require.False(t, strings.HasPrefix(key, "eldest-"), key)
		}
	})
	t.Run("wrong node", func(t *testing.T) {
		leader, follower := listenedPair(t, ending, func(cfg *Config) { cfg.Wait = 500 * time.Millisecond })
		follower.front.router.follow(leader.as(6))
		_, err := follower.unary(etcdtest.Context(t), "")
		requireRetry(t, err)
		follower.events.next(t).is(t, WayRefused, codes.Unavailable, RefusalWrongNode)
		e := leader.events.last(t)
		e.is(t, WayRefused, codes.Unavailable, RefusalWrongNode)
		require.True(t, e.Hop)
	})
	t.Run("stopping", func(t *testing.T) {
		leader, follower := listenedPair(t, ending, func(cfg *Config) { cfg.Wait = 50 * time.Millisecond })
		tenure := leader.front.router.stop(fmt.Errorf("%w: stopping", eldest.ErrClosed))
		defer tenure.finish(errDeposed)
		_, err := leader.unary(etcdtest.Context(t), "")
		requireRetry(t, err)
		leader.events.next(t).is(t, WayRefused, codes.Unavailable, RefusalStopping)
		_, err = follower.unary(etcdtest.Context(t), "")
		requireRetry(t, err)
		e := follower.events.next(t)
		require.Contains(t, []Refusal{RefusalStopping, RefusalNoLeader}, e.Refusal, "or it was told before")
		e.is(t, WayRefused, codes.Unavailable, e.Refusal)
	})
	t.Run("busy", func(t *testing.T) {
		n := newListened(t, "n", func(cfg *Config) { cfg.Wait, cfg.MaxWaiting = etcdtest.Patience, 1 })
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
		waits := asking(func() error { _, err := n.unary(ctx, ""); return err })
		etcdtest.Eventually(t, func() bool { calls, _ := n.front.lobby.load(); return calls == 1 }, "one waits")
		_, err := n.unary(etcdtest.Context(t), "")
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		n.events.next(t).is(t, WayRefused, codes.ResourceExhausted, RefusalBusy)
		cancel()
		require.Equal(t, codes.Canceled, status.Code(etcdtest.Take(t, waits, "its end")))
	})
	t.Run("the caller's own end is no refusal", func(t *testing.T) {
		leader, follower := listenedPair(t, ending)
		for _, n := range []listened{leader, follower} {
			ctx, cancel := context.WithCancel(etcdtest.Context(t))
			done := asking(func() error { _, err := n.unary(ctx, ""); return err })
			etcdtest.Take(t, began, "the handler")
			cancel()
			require.Equal(t, codes.Canceled, status.Code(etcdtest.Take(t, done, "the answer")))
			way := WayServed
			if n == follower {
				way = WayForwarded
			}
			n.events.next(t).is(t, way, codes.Canceled, 0)
		}
	})
}

// A handler's own trailer, and what it was told elsewhere, is no refusal of a curator's.
func TestHooksBelieveTheLeaderOnly(t *testing.T) {
	leader, follower := listenedPair(t, &script{unary: func(ctx context.Context, in *message) (*message, error) {
		if err := grpc.SetTrailer(ctx, map[string][]string{refusedKey: {"busy", "nothing that there is"}}); err != nil {
			return nil, err
		}
		return in, refusal{election: "test", token: 7, untouched: true, why: "says another one"}.err()
	}})
	for _, n := range []listened{leader, follower} {
		_, err := n.unary(etcdtest.Context(t), "")
		require.Equal(t, codes.Unavailable, status.Code(err))
		e := n.events.next(t)
		e.is(t, e.Way, codes.Unavailable, 0)
	}
}

// A call counts in one stage at a time, and what is held for it while it waits.
func TestLoad(t *testing.T) {
	n := newListened(t, "n", func(cfg *Config) { cfg.Wait = etcdtest.Patience })
	require.Equal(t, Load{}, n.Load())
	is := func(want Load) {
		t.Helper()
		etcdtest.Eventually(t, func() bool { return n.Load() == want }, fmt.Sprintf("%+v", want))
	}
	in := strings.Repeat("x", 1000)
	call := func() <-chan error {
		return asking(func() error { _, err := n.unary(etcdtest.Context(t), in); return err })
	}
	first := call()
	is(Load{Waiting: 1})
	lame := newNode(t, "lame")
	lame.lame(t, &script{unary: echo})
	n.front.router.follow(lame.as(7))
	second := call() // whose message this node has received by now
	etcdtest.Eventually(t, func() bool { l := n.Load(); return l.Waiting == 2 && l.Held >= 1000 }, "both wait, and a message is held")

	s, began := waiting()
	leader := newNode(t, "leader")
	leader.leads(8, s)
	n.front.router.follow(leader.as(8))
	etcdtest.Take(t, began, "a handler")
	etcdtest.Take(t, began, "the other")
	is(Load{Forwarding: 2, Held: 2 * 1003}) // until it is known that they have begun
	leader.loses(leader.front.router.Now().tenure, errDeposed)
	requireRetry(t, etcdtest.Take(t, first, "the first"))
	requireRetry(t, etcdtest.Take(t, second, "the second"))
	is(Load{})

	tenure := n.leads(9, s)
	third := call()
	etcdtest.Take(t, began, "a handler")
	is(Load{Serving: 1})
	n.loses(tenure, errDeposed)
	requireRetry(t, etcdtest.Take(t, third, "the third"))
	is(Load{})
}

// A panic in a handler is an event as well, and a panic in a hook is one in the call.
func TestHooksAndPanics(t *testing.T) {
	recovered := make(chan any, 1)
	e := &events{}
	n := newNode(t, "n", e.hooks, func(cfg *Config) {
		cfg.ServerOptions = append(cfg.ServerOptions, grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			defer func() {
				if p := recover(); p != nil {
					recovered <- p
					err = status.Error(codes.Internal, "recovered")
				}
			}()
			return handler(srv, stream)
		}))
		cfg.Hooks = TeeHooks(cfg.Hooks, Hooks{Answered: func(e CallEvent) {
			if e.Code == codes.OK {
				panic("the hook's")
			}
		}})
	})
	n.leads(7, &script{unary: func(_ context.Context, in *message) (*message, error) {
		if len(in.GetValue()) > 0 {
			panic(string(in.GetValue()))
		}
		return in, nil
	}})
	_, err := n.unary(etcdtest.Context(t), "the handler's")
	require.Equal(t, codes.Internal, status.Code(err))
	e.next(t).is(t, WayServed, codes.Unknown, 0)
	require.Contains(t, fmt.Sprint(etcdtest.Take(t, recovered, "the panic")), "the handler's")
	_, err = n.unary(etcdtest.Context(t), "")
	require.Equal(t, codes.Internal, status.Code(err))
	require.Equal(t, "the hook's", etcdtest.Take(t, recovered, "the panic"))
	require.Equal(t, Load{}, n.Load())
}

// While leadership moves to and fro under many callers, the events that are no hops are what
// the callers have seen, code by code, and nothing is left under way.
func TestHooksAddUp(t *testing.T) {
	t.Parallel()
	var mine [2]events
	a := newNode(t, "a", mine[0].hooks, func(cfg *Config) { cfg.Wait = 20 * time.Millisecond })
	b := newNode(t, "b", mine[1].hooks, func(cfg *Config) { cfg.Wait = 20 * time.Millisecond })
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		switch rand.N(4) {
		case 0:
			return nil, status.Error(codes.AlreadyExists, "the handler says")
		case 1:
			<-ctx.Done() // the tenure's
			return nil, ctx.Err()
		}
		return in, nil
	}}
	var seen [2]sync.Map // *atomic.Int64 by code
	var ended atomic.Int64
	ctx, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for i, n := range []*node{a, b, a, b} {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, err := n.unary(etcdtest.Context(t), "x")
				count, _ := seen[i%2].LoadOrStore(status.Code(err), &atomic.Int64{})
				count.(*atomic.Int64).Add(1)
				ended.Add(1)
			}
		})
	}
	token := eldest.Token(1)
	for range 100 {
		for _, n := range []*node{a, b} {
			other := map[*node]*node{a: b, b: a}[n]
			token += 2
			tenure := n.leads(token, s)
			other.front.router.follow(n.as(token))
			// The next leads a moment before this one knows that it has lost, or after.
			done := ended.Load()
			etcdtest.Eventually(t, func() bool { return ended.Load() > done+3 || n.busy(tenure) > 2 }, "calls go on")
			if rand.N(3) == 0 {
				other.front.router.neither(errors.New("not known"))
			}
			n.loses(tenure, errDeposed)
		}
	}
	stop()
	last := a.leads(token+2, &script{unary: echo})
	b.front.router.follow(a.as(token + 2))
	all := make(chan struct{})
	go func() { callers.Wait(); close(all) }()
	etcdtest.Take(t, all, "all calls end")
	a.loses(last, errDeposed)

	for i, n := range []*node{a, b} {
		told := make(map[codes.Code]int)
		refused := 0
		for _, e := range mine[i].all {
			if e.Hop {
				continue
			}
			told[e.Code]++
			require.Equal(t, e.Code == codes.Unavailable, e.Refusal != 0, "%+v", e)
			if e.Refusal != 0 {
				refused++
			}
		}
		counts := make(map[codes.Code]int)
		seen[i].Range(func(c, count any) bool {
			counts[c.(codes.Code)] = int(count.(*atomic.Int64).Load())
			return true
		})
		require.Equal(t, counts, told)
		require.Positive(t, refused)
		require.Equal(t, Load{}, n.Load())
		t.Logf("%s: %v, %d events", n.cfg.Elector.NodeID, counts, len(mine[i].all))
	}
}

// Each reason has a name of its own, and is found by it.
func TestRefusalsHaveNames(t *testing.T) {
	require.Len(t, Refusals(), int(RefusalStopping))
	for _, r := range Refusals() {
		require.Equal(t, r, refusalOf(r.String()))
	}
	require.Equal(t, "none", Refusal(0).String())
	require.Equal(t, "unknown", Refusal(200).String())
	require.Equal(t, "unknown", Way(200).String())
	require.Zero(t, refusalOf("nothing"))
	require.Zero(t, TeeHooks(Hooks{}).Answered)
}
