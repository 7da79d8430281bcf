package curator

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// events collects the events of a node's hooks.
type events struct {
	mu  sync.Mutex
	all []CallEvent
}

func (e *events) hooks(cfg *Config) {
	cfg.Hooks.Answered = func(event CallEvent) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, event)
	}
}

// take waits for events, and removes them.
func (e *events) take(t *testing.T) (all []CallEvent) {
	t.Helper()
	etcdtest.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		all, e.all = e.all, nil
		return len(all) > 0
	}, "an event")
	return all
}

// listened is a node whose events are collected.
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
	follower.follows(leader.node, 7)
	return leader, follower
}

// tells requires that there is one event, with these values, and returns it.
func (l listened) tells(t *testing.T, way Way, code codes.Code, refusal Refusal) CallEvent {
	t.Helper()
	all := l.events.take(t)
	require.Len(t, all, 1)
	all[0].is(t, way, code, refusal)
	require.LessOrEqual(t, all[0].Waited, all[0].Took)
	return all[0]
}

func (e CallEvent) is(t *testing.T, way Way, code codes.Code, refusal Refusal) {
	t.Helper()
	require.Equal(t, fmt.Sprint(way, code, refusal), fmt.Sprint(e.Way, e.Code, e.Refusal), "what became of the call")
}

// A call that the service answers is reported once at each node that it comes to, with the
// service's code.
func TestHooksOfAnsweredCalls(t *testing.T) {
	leader, follower := listenedPair(t, &script{stream: echoes, unary: func(_ context.Context, in *message) (*message, error) {
		if string(in.GetValue()) == "no" {
			return nil, status.Error(codes.AlreadyExists, "the handler says")
		}
		return in, nil
	}})
	for in, code := range map[string]codes.Code{"yes": codes.OK, "no": codes.AlreadyExists} {
		requireCode(t, code, leader.call(in))
		e := leader.tells(t, WayServed, code, 0)
		require.Equal(t, unaryMethod, e.Method)
		require.False(t, e.Hop)
		require.Equal(t, 1, e.Attempts)
		require.Positive(t, e.Took)
		for range 2 { // before the method is known to be unary, and after
			requireCode(t, code, follower.call(in))
			e = follower.tells(t, WayForwarded, code, 0)
			require.False(t, e.Hop)
			require.Equal(t, 1, e.Attempts)
			require.True(t, leader.tells(t, WayServed, code, 0).Hop)
		}
	}
	stream := follower.open(bidiMethod)
	stream.send("hello")
	stream.expect("hello")
	require.Equal(t, Load{Forwarding: 1}, follower.Load(), "this call and no other is under way")
	require.Equal(t, Load{Serving: 1}, leader.Load(), "this call and no other is under way")
	stream.closes()
	follower.tells(t, WayForwarded, codes.OK, 0)
	leader.tells(t, WayServed, codes.OK, 0)
	require.Equal(t, Load{}, follower.Load(), "no call is under way")
	require.Equal(t, Load{}, leader.Load(), "no call is under way")

	requireCode(t, codes.Unimplemented, leader.conn.Invoke(etcdtest.Context(t), "/nobody.Knows/It", &message{}, &message{}))
	leader.tells(t, WayServed, codes.Unimplemented, 0)
	// The services that every node answers itself are not counted.
	for method, code := range map[string]codes.Code{"Check": codes.OK, "Nothing": codes.Unimplemented} {
		requireCode(t, code, leader.conn.Invoke(etcdtest.Context(t), "/grpc.health.v1.Health/"+method, &message{}, &message{}))
	}
	require.Empty(t, leader.events.all)
}

// The event has the reason for which a node answers in the service's place, at the node that the
// caller called, also if the leader has refused.
func TestHooksOfRefusedCalls(t *testing.T) {
	ending, began := waiting()
	short := waits(50 * time.Millisecond)
	// late is a call with a deadline that passes.
	late := func(t *testing.T, n listened, reason Refusal) {
		t.Helper()
		n.conn.Connect()
		etcdtest.Eventually(t, func() bool { return n.conn.GetState() == connectivity.Ready }, "there is a connection")
		_, err := n.unary(etcdtest.ContextFor(t, 100*time.Millisecond), "")
		requireCode(t, codes.DeadlineExceeded, err)
		e := n.events.take(t)[0]
		require.Contains(t, []codes.Code{codes.DeadlineExceeded, codes.Canceled}, e.Code)
		e.is(t, WayRefused, e.Code, reason)
	}
	t.Run("no leader", func(t *testing.T) {
		n := newListened(t, "n", short)
		requireRetry(t, n.call(""))
		e := n.tells(t, WayRefused, codes.Unavailable, RefusalNoLeader)
		require.GreaterOrEqual(t, e.Waited, 50*time.Millisecond)
		require.Zero(t, e.Attempts)
		late(t, newListened(t, "n"), RefusalNoLeader)
	})
	t.Run("unreachable", func(t *testing.T) {
		var log bytes.Buffer
		n := newListened(t, "n", waits(500*time.Millisecond), func(cfg *Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		n.followsAt(etcdtest.Nowhere(t))
		for range 2 { // before the method is known to be unary, and after
			n.untouched("refused")
			e := n.tells(t, WayRefused, codes.Unavailable, RefusalUnreachable)
			require.Positive(t, e.Attempts)
			require.GreaterOrEqual(t, e.Waited, 250*time.Millisecond)
			late(t, n, RefusalUnreachable)
			n.router.Now().Peer.unary.Store(unaryMethod, nil)
		}
		require.Equal(t, 1, strings.Count(log.String(), "the leader cannot be reached"), "said once")
		n.followsAt("no address:\x00")
		n.untouched("cannot be dialled")
		n.tells(t, WayRefused, codes.Unavailable, RefusalUnreachable)
	})
	t.Run("connection lost", func(t *testing.T) {
		var way network
		leader, follower := listenedPair(t, ending, way.join)
		done := follower.ask("")
		etcdtest.Take(t, began, "the handler")
		way.cut()
		requireRetry(t, etcdtest.Take(t, done, "the answer"))
		follower.tells(t, WayForwarded, codes.Unavailable, RefusalConnectionLost)
		leader.tells(t, WayServed, codes.Canceled, 0) // for the leader the caller has cancelled
	})
	t.Run("tenure ended", func(t *testing.T) {
		leader, follower := listenedPair(t, ending)
		done := follower.ask("")
		etcdtest.Take(t, began, "the handler")
		leader.loses()
		requireRetry(t, etcdtest.Take(t, done, "the answer"))
		follower.tells(t, WayForwarded, codes.Unavailable, RefusalTenureEnded)
		leader.tells(t, WayServed, codes.Unavailable, RefusalTenureEnded)
		// The reason is passed only between the nodes.
		leader.leads(9, ending)
		follower.follows(leader.node, 9)
		stream := follower.open(bidiMethod)
		stream.expect("begun")
		etcdtest.Take(t, began, "the handler")
		leader.loses()
		requireRetry(t, stream.end())
		for key := range stream.Trailer() {
			require.False(t, strings.HasPrefix(key, "eldest-"), key)
		}
	})
	t.Run("wrong node", func(t *testing.T) {
		leader, follower := listenedPair(t, ending, waits(500*time.Millisecond))
		follower.follows(leader.node, 6)
		requireRetry(t, follower.call(""))
		follower.tells(t, WayRefused, codes.Unavailable, RefusalWrongNode)
		e := leader.events.take(t)[0] // the leader has an event for each attempt of the call
		e.is(t, WayRefused, codes.Unavailable, RefusalWrongNode)
		require.True(t, e.Hop)
	})
	t.Run("stopping", func(t *testing.T) {
		leader, follower := listenedPair(t, ending, short)
		tenure := leader.router.Stop(fmt.Errorf("%w: stopping", eldest.ErrClosed))
		defer tenure.Finish(errDeposed)
		requireRetry(t, leader.call(""))
		leader.tells(t, WayRefused, codes.Unavailable, RefusalStopping)
		requireRetry(t, follower.call(""))
		e := follower.events.take(t)[0]
		require.Contains(t, []Refusal{RefusalStopping, RefusalNoLeader}, e.Refusal, "or it was told before")
		e.is(t, WayRefused, codes.Unavailable, e.Refusal)
	})
	t.Run("busy", func(t *testing.T) {
		n := newListened(t, "n", patient, func(cfg *Config) { cfg.MaxWaiting = 1 })
		ctx, cancel := context.WithCancel(etcdtest.Context(t))
		waits := n.callMany(ctx, 1, "")
		n.holds(1, "one waits")
		requireCode(t, codes.ResourceExhausted, n.call(""))
		n.tells(t, WayRefused, codes.ResourceExhausted, RefusalBusy)
		cancel()
		requireCode(t, codes.Canceled, etcdtest.Take(t, waits, "its end"))
	})
	t.Run("the caller's own end is no refusal", func(t *testing.T) {
		leader, follower := listenedPair(t, ending)
		for way, n := range map[Way]listened{WayServed: leader, WayForwarded: follower} {
			ctx, cancel := context.WithCancel(etcdtest.Context(t))
			done := n.callMany(ctx, 1, "")
			etcdtest.Take(t, began, "the handler")
			cancel()
			requireCode(t, codes.Canceled, etcdtest.Take(t, done, "the answer"))
			if n == leader {
				n.tells(t, way, codes.Canceled, 0)
			} else {
				n.events.take(t)[0].is(t, way, codes.Canceled, 0)
			}
		}
	})
}

// A handler's own trailer, and an answer that it received elsewhere, is not a refusal of a curator.
func TestHooksBelieveTheLeaderOnly(t *testing.T) {
	leader, follower := listenedPair(t, &script{unary: func(ctx context.Context, in *message) (*message, error) {
		if err := grpc.SetTrailer(ctx, map[string][]string{refusedKey: {"busy", "nothing that there is"}}); err != nil {
			return nil, err
		}
		return in, refusal{election: "test", token: 7, untouched: true, why: "says another one"}.err()
	}})
	requireCode(t, codes.Unavailable, leader.call(""))
	leader.tells(t, WayServed, codes.Unavailable, 0)
	requireCode(t, codes.Unavailable, follower.call(""))
	follower.tells(t, WayForwarded, codes.Unavailable, 0)
}

// A call counts in one state at a time, and so do the bytes that are held for it while it waits.
func TestLoad(t *testing.T) {
	n := newNode(t, "n", patient, grace(time.Second))
	is := func(want Load) {
		t.Helper()
		etcdtest.Eventually(t, func() bool { return n.Load() == want }, "%+v", want)
	}
	in := strings.Repeat("x", 1000)
	is(Load{})
	first := n.ask(in)
	is(Load{Waiting: 1})
	refusing, leader := newNode(t, "refusing"), newNode(t, "leader")
	refusing.leadsWhile(7, echoing, expired)
	n.follows(refusing, 7)
	second := n.ask(in) // this node has received its message by now
	etcdtest.Eventually(t, func() bool { l := n.Load(); return l.Waiting == 2 && l.Held >= 1000 }, "both wait, and a message is held")
	s, began := waiting()
	leader.leads(8, s)
	n.follows(leader, 8)
	etcdtest.Take(t, began, "a handler")
	etcdtest.Take(t, began, "the other")
	is(Load{Forwarding: 2, Held: 2 * 1003}) // until the node has received that they have begun
	leader.loses()
	requireRetry(t, etcdtest.Take(t, first, "the first"))
	requireRetry(t, etcdtest.Take(t, second, "the second"))
	is(Load{})
	n.leads(9, s)
	third := n.ask(in)
	etcdtest.Take(t, began, "a handler")
	is(Load{Serving: 1})
	n.loses()
	requireRetry(t, etcdtest.Take(t, third, "the third"))
	is(Load{})
}

// A panic in a handler is an event as well, and a panic in a hook is a panic in the call.
func TestHooksAndPanics(t *testing.T) {
	recovered := make(chan any, 1)
	n := newListened(t, "n", recovering(recovered))
	answered := n.cfg.Hooks.Answered
	n.cfg.Hooks.Answered = func(e CallEvent) {
		answered(e)
		if e.Code == codes.OK {
			panic("the hook's")
		}
	}
	n.leads(7, &script{unary: func(_ context.Context, in *message) (*message, error) {
		if len(in.GetValue()) > 0 {
			panic(string(in.GetValue()))
		}
		return in, nil
	}})
	requireCode(t, codes.DataLoss, n.call("the handler's"))
	n.tells(t, WayServed, codes.Unknown, 0)
	require.Contains(t, fmt.Sprint(etcdtest.Take(t, recovered, "the panic")), "the handler's")
	requireCode(t, codes.DataLoss, n.call(""))
	require.Equal(t, "the hook's", etcdtest.Take(t, recovered, "the panic"))
	require.Equal(t, Load{}, n.Load())
}

// Each reason has its own name, and can be found by it.
func TestRefusalsHaveNames(t *testing.T) {
	require.Len(t, Refusals(), int(RefusalStopping))
	for _, r := range Refusals() {
		require.Equal(t, r, refusalOf(r.String()))
	}
	require.Equal(t, "none", Refusal(0).String())
	require.Equal(t, "unknown", Refusal(200).String())
	require.Equal(t, "unknown", Way(200).String())
	require.Zero(t, refusalOf("nothing"))
}
