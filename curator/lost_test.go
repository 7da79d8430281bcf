package curator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// errDeposed is why a tenure of these tests ends.
var errDeposed = fmt.Errorf("%w: by the test", eldest.ErrDeposed)

// asking makes a call in the background.
func asking(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// atBoth runs a test with a leader and with a follower in front of it; the tenure is the
// leader's.
func atBoth(t *testing.T, s *script, test func(t *testing.T, n, leader *node, tenure *tenure), change ...func(*Config)) {
	t.Helper()
	for _, name := range []string{"leader", "follower"} {
		t.Run(name, func(t *testing.T) {
			leader, follower := pair(t, s, change...)
			tenure := leader.front.router.Now().tenure
			if name == "leader" {
				test(t, leader, leader, tenure)
			} else {
				test(t, follower, leader, tenure)
			}
		})
	}
}

// Row 45: a unary handler is told of the loss by its context, and has a moment for an
// answer of its own; a cancelled one is the loss.
func TestRequirement45HandlerEndsWithItsTenure(t *testing.T) {
	began := make(chan struct{}, 1)
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		began <- struct{}{}
		<-ctx.Done()
		switch string(in.GetValue()) {
		case "done":
			return in, nil
		case "own":
			return nil, status.Error(codes.Aborted, "own")
		case "cause":
			return nil, context.Cause(ctx)
		case "status":
			return nil, status.FromContextError(ctx.Err()).Err()
		default:
			return nil, fmt.Errorf("wrapped: %w", ctx.Err())
		}
	}}
	for _, in := range []string{"done", "own", "cause", "status", "wrapped"} {
		t.Run(in, func(t *testing.T) {
			atBoth(t, s, func(t *testing.T, n, leader *node, tenure *tenure) {
				var out string
				done := asking(func() (err error) { out, err = n.unary(etcdtest.Context(t), in); return err })
				etcdtest.Take(t, began, "the handler")
				leader.loses(tenure, errDeposed)
				err := etcdtest.Take(t, done, "the answer")
				switch in {
				case "done":
					require.NoError(t, err, "what was done is said")
					require.Equal(t, "done", out)
				case "own":
					require.Equal(t, codes.Aborted, status.Code(err))
				default:
					detail := requireRetry(t, err)
					require.Equal(t, int64(7), detail.GetToken())
					require.Equal(t, "leader", detail.GetNodeId())
					require.False(t, detail.GetNothingApplied(), "the handler may have done anything")
				}
			}, func(cfg *Config) { cfg.Grace = etcdtest.Patience })
		})
	}
}

// Row 45: a handler that does not look at its context is answered for, after the grace;
// the tenure is not over before it has returned.
func TestRequirement45StubbornHandler(t *testing.T) {
	began, release := make(chan struct{}, 1), make(chan struct{})
	s := &script{unary: func(_ context.Context, in *message) (*message, error) {
		began <- struct{}{}
		<-release
		return in, nil
	}}
	atBoth(t, s, func(t *testing.T, n, leader *node, tenure *tenure) {
		done := asking(func() error { _, err := n.unary(etcdtest.Context(t), ""); return err })
		etcdtest.Take(t, began, "the handler")
		over := make(chan struct{})
		go func() { defer close(over); leader.loses(tenure, errDeposed) }()
		detail := requireRetry(t, etcdtest.Take(t, done, "the answer"))
		require.False(t, detail.GetNothingApplied())
		select {
		case <-over:
			require.Fail(t, "the tenure is over while a handler runs")
		default:
		}
		release <- struct{}{}
		etcdtest.Take(t, over, "the end of the tenure")
	}, func(cfg *Config) { cfg.Grace = time.Millisecond })
}

// Row 45: a stream is answered at once when its handler waits in it, however long the
// grace; what the handler still tries fails.
func TestRequirement45StreamsEnd(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan [2]error, 1)
	s := &script{stream: func(stream grpc.ServerStream) error {
		if err := replies(stream, "first"); err != nil {
			return err
		}
		began <- struct{}{}
		_, err := received(stream)
		ended <- [2]error{err, replies(stream, "more")}
		return err
	}}
	atBoth(t, s, func(t *testing.T, n, leader *node, tenure *tenure) {
		for token := eldest.Token(8); token < 20; token++ { // in the receive, or just before it
			stream := n.open(etcdtest.Context(t), bidiMethod)
			stream.expect("first")
			etcdtest.Take(t, began, "the handler")
			leader.loses(tenure, errDeposed)
			detail := requireRetry(t, stream.end())
			require.False(t, detail.GetNothingApplied())
			for _, err := range etcdtest.Take(t, ended, "the handler's end") {
				require.Equal(t, codes.Unavailable, status.Code(err))
			}
			tenure = leader.leads(token, s)
			if n != leader {
				n.front.router.follow(leader.as(token))
			}
		}
	}, func(cfg *Config) { cfg.Grace = time.Hour })
}

// busy is how many handlers of the tenure run.
func (n *node) busy(t *tenure) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

// Row 45: a sender that is held up by its caller's flow control is answered for, too.
func TestRequirement45SendersEnd(t *testing.T) {
	ended := make(chan error, 1)
	full := make(chan struct{})
	s := &script{stream: func(stream grpc.ServerStream) error {
		big := string(make([]byte, 1<<16))
		for i := 0; ; i++ {
			if i == 8 {
				close(full)
			}
			if err := replies(stream, big); err != nil {
				ended <- err
				return err
			}
		}
	}}
	leader, follower := pair(t, s, func(cfg *Config) { cfg.Grace = time.Hour })
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	etcdtest.Take(t, full, "the handler") // and goes on until nobody takes more
	leader.loses(leader.front.router.Now().tenure, errDeposed)
	require.Equal(t, codes.Unavailable, status.Code(etcdtest.Take(t, ended, "the handler's end")))
	requireRetry(t, stream.end())
}

// Row 45: a unary call begins when its message is here, and not before: the end of a tenure
// before that is nothing to it.
func TestRequirement45MessageThatIsOnItsWay(t *testing.T) {
	t.Parallel()
	s := &script{unary: echo}
	for name, known := range map[string]bool{"at the leader": true, "at a follower": false, "at a follower that knows the method": true} {
		t.Run(name, func(t *testing.T) {
			leader := newNode(t, "leader", func(cfg *Config) { cfg.Grace = time.Hour })
			tenure, n := leader.leads(7, s), leader
			if name != "at the leader" {
				n = newNode(t, "follower", func(cfg *Config) { cfg.Grace = time.Second })
				n.front.router.follow(leader.as(7))
				if known {
					n.front.router.Now().peer.unary.learn(unaryMethod)
				}
			}
			stream := n.open(etcdtest.Context(t), unaryMethod)
			stream.send("the message, and no half-close")
			require.Never(t, func() bool { return leader.busy(tenure) > 0 }, 50*time.Millisecond, time.Millisecond)
			leader.loses(tenure, errDeposed)
			leader.leads(8, s)
			if n != leader {
				n.front.router.follow(leader.as(8))
				time.Sleep(1200 * time.Millisecond) // the connection to the last tenure's leader is closed
			}
			require.NoError(t, stream.CloseSend())
			stream.expect("the message, and no half-close")
			require.NoError(t, stream.end())
			require.EqualValues(t, 1, leader.calls.Load())
		})
	}
}

// Row 45: the refusals of a guard, in a tenure that has not ended yet on this side. The
// handler of a stream may have done much before.
func TestRequirement45GuardRefusals(t *testing.T) {
	guard := &txn.GuardError{Election: "test", Wanted: 7}
	refusals := map[string]struct {
		err     error
		code    codes.Code
		nothing bool
	}{
		// It may have written before.
		"guard":       {guard, codes.Unavailable, false},
		"wrapped":     {fmt.Errorf("put: %w", &eldest.OpError{Op: "x", Err: guard}), codes.Unavailable, false},
		"not leading": {fmt.Errorf("%w: %w", eldest.ErrNotLeading, eldest.ErrSessionLost), codes.Unavailable, false},
		// It says that it has not.
		"nothing":      {NothingApplied(guard), codes.Unavailable, true},
		"not begun":    {fmt.Errorf("put: %w", NothingApplied(eldest.ErrNotLeading)), codes.Unavailable, true},
		"contradicted": {NothingApplied(fmt.Errorf("%w: %w", eldest.ErrOutcomeUnknown, eldest.ErrDeposed)), codes.Unavailable, false},
		"none of ours": {NothingApplied(errors.New("plain")), codes.Unknown, false},
		// Of another election, or of another tenure of this one.
		"another":      {&txn.GuardError{Election: "another", Wanted: 7}, codes.Unknown, false},
		"earlier":      {&txn.GuardError{Election: "test", Wanted: 6}, codes.Unknown, false},
		"fence":        {&fence.RefusedError{Election: "test", Token: 7, Newest: 9}, codes.Unavailable, false},
		"fenced":       {&fence.RefusedError{Election: "another", Token: 7, Newest: 9}, codes.FailedPrecondition, false},
		"fenced, too":  {fmt.Errorf("put: %w", &fence.RefusedError{Election: "test", Token: 6, Newest: 9}), codes.FailedPrecondition, false},
		"another's op": {&eldest.OpError{Op: "x", Election: "another", Err: eldest.ErrDeposed}, codes.Unknown, false},
		"deposed":      {eldest.ErrDeposed, codes.Unavailable, false},
		"session":      {eldest.ErrSessionLost, codes.Unavailable, false},
		"unknown":      {fmt.Errorf("%w: %w", eldest.ErrOutcomeUnknown, eldest.ErrDeposed), codes.Unavailable, false},
		"outcome":      {eldest.ErrOutcomeUnknown, codes.Unknown, false},
		"cancelled":    {context.Canceled, codes.Canceled, false},
		"deadline":     {context.DeadlineExceeded, codes.DeadlineExceeded, false},
		"plain":        {errors.New("plain"), codes.Unknown, false},
		"status":       {status.Error(codes.DataLoss, "own"), codes.DataLoss, false},
	}
	s := &script{
		unary: func(_ context.Context, in *message) (*message, error) {
			return nil, refusals[string(in.GetValue())].err
		},
		stream: func(stream grpc.ServerStream) error {
			in, err := received(stream)
			if err != nil {
				return err
			}
			return refusals[in].err
		},
	}
	everywhere(t, s, func(t *testing.T, n *node) {
		for name, want := range refusals {
			_, err := n.unary(etcdtest.Context(t), name)
			require.Equal(t, want.code, status.Code(err), "%s: %v", name, err)
			stream := n.open(etcdtest.Context(t), bidiMethod)
			stream.send(name)
			streamed := stream.end()
			require.Equal(t, want.code, status.Code(streamed), "%s: %v", name, streamed)
			if want.code == codes.Unavailable {
				require.Equal(t, want.nothing, requireRetry(t, err).GetNothingApplied(), name)
				require.False(t, requireRetry(t, streamed).GetNothingApplied(), name)
			}
		}
	})
}

// Row 45: the caller's own end is the caller's, also in a tenure that ends.
func TestRequirement45CallersOwnEnd(t *testing.T) {
	tenure := newTenure(context.Background(), "test", 7, func() bool { return true })
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	lose := func(bool) error { return errDeposed }
	require.Equal(t, codes.Canceled, status.Code(tenure.judge(ended, context.Canceled, errDeposed, lose)))
	late, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	require.Equal(t, codes.DeadlineExceeded, status.Code(tenure.judge(late, context.Canceled, errDeposed, lose)))
	require.Equal(t, errDeposed, tenure.judge(context.Background(), context.Canceled, errDeposed, lose))
	require.Equal(t, io.EOF, tenure.judge(context.Background(), io.EOF, errDeposed, lose), "none of ours")
	require.Equal(t, context.Canceled, tenure.judge(context.Background(), context.Canceled, nil, lose), "the tenure goes on")
}

// I9: a handler begins only in a tenure that holds at that moment, read from the clock:
// before any timer has fired.
func TestHandlerBeginsOnlyWhileTheTenureHolds(t *testing.T) {
	n := newNode(t, "n", func(cfg *Config) { cfg.Wait = time.Millisecond })
	tenure := n.tenure(7, &script{unary: echo})
	holds := true
	tenure.holds = func() bool { return holds }
	n.front.router.lead(tenure)
	_, err := n.unary(etcdtest.Context(t), "")
	require.NoError(t, err)
	holds = false
	_, err = n.unary(etcdtest.Context(t), "")
	require.True(t, requireRetry(t, err).GetNothingApplied())
	require.EqualValues(t, 1, n.calls.Load())
}

// The message of a unary call may come long after the call: then the handler begins, or
// does not.
func TestMessageThatComesTooLate(t *testing.T) {
	n := newNode(t, "n", func(cfg *Config) { cfg.Wait = 50 * time.Millisecond })
	tenure := n.tenure(7, &script{unary: echo})
	var holds atomic.Bool
	holds.Store(true)
	tenure.holds = holds.Load
	n.front.router.lead(tenure)
	call := n.open(etcdtest.Context(t), unaryMethod)
	time.Sleep(2 * n.front.wait) // the caller's time, not the call's
	holds.Store(false)
	call.send("late")
	require.NoError(t, call.CloseSend())
	require.True(t, requireRetry(t, call.end()).GetNothingApplied())
	require.Zero(t, n.calls.Load())
}

// A call that came too late for a tenure finds the next one.
func TestCallBetweenTenures(t *testing.T) {
	n := newNode(t, "n")
	tenure := n.leads(7, &script{unary: echo})
	tenure.finish(errDeposed) // and the route still leads there
	done := asking(func() error { _, err := n.unary(etcdtest.Context(t), ""); return err })
	n.front.router.leave(tenure, errDeposed)
	n.leads(8, &script{unary: echo})
	require.NoError(t, etcdtest.Take(t, done, "the answer"))
	require.EqualValues(t, 1, n.calls.Load())
}

// A tenure that is given up of one's own accord lets its unary calls finish, while the
// node still leads, and waits for streams not at all.
func TestSettle(t *testing.T) {
	began, release := make(chan struct{}, 2), make(chan struct{})
	s := &script{unary: func(ctx context.Context, in *message) (*message, error) {
		began <- struct{}{}
		select {
		case <-release:
			return in, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, stream: func(stream grpc.ServerStream) error {
		began <- struct{}{}
		<-stream.Context().Done()
		return stream.Context().Err()
	}}
	n := newNode(t, "n")
	tenure := n.leads(7, s)
	unary := asking(func() error { _, err := n.unary(etcdtest.Context(t), ""); return err })
	stream := n.open(etcdtest.Context(t), bidiMethod)
	etcdtest.Take(t, began, "a handler")
	etcdtest.Take(t, began, "the other")
	n.front.router.leave(tenure, errDeposed)
	settled := make(chan struct{})
	go func() { defer close(settled); tenure.settle(time.Hour) }()
	release <- struct{}{}
	etcdtest.Take(t, settled, "the unary call")
	require.NoError(t, etcdtest.Take(t, unary, "its answer"))
	require.NoError(t, tenure.lost())
	tenure.settle(0)
	tenure.finish(errDeposed)
	requireRetry(t, stream.end())
	tenure.settle(time.Hour) // of a tenure that has ended: nothing to wait for
}

// Row 53: a service of one election is fenced for another one, whose leaders call it. A
// leader whose token is too old is told so, at any node and whichever way it is, and not
// that its request can be retried.
func TestRow53FenceOfAnotherElection(t *testing.T) {
	fenced, err := fence.New(fence.Config{Elections: []string{"billing"}, Store: &fence.Memory{}})
	require.NoError(t, err)
	everywhere(t, &script{unary: echo, stream: echoes}, func(t *testing.T, n *node) {
		require.NoError(t, fenced.Admit(t.Context(), "billing", 9))
		conn := fence.Conn(n.conn, billing{})
		stream, err := conn.NewStream(etcdtest.Context(t), anyStream, bidiMethod)
		require.NoError(t, err)
		for name, err := range map[string]error{
			"unary":  conn.Invoke(etcdtest.Context(t), unaryMethod, &message{}, &message{}),
			"stream": stream.RecvMsg(&message{}),
		} {
			require.Equal(t, codes.FailedPrecondition, status.Code(err), "%s: %v", name, err)
			var refused *fence.RefusedError
			require.ErrorAs(t, err, &refused, name)
			require.EqualValues(t, 9, refused.Newest, name)
		}
		require.Zero(t, n.calls.Load())
	}, func(cfg *Config) { cfg.Unary, cfg.Stream = fenced.UnaryServer(), fenced.StreamServer() })
}

// billing is a tenure of another election, which has not learnt of its end.
type billing struct{}

func (billing) Election() string    { return "billing" }
func (billing) Token() eldest.Token { return 8 }
func (billing) Err() error          { return nil }

// Row 53: that a tenure has ended makes no other election's refusal its own.
func TestRow53FenceAtTheEndOfATenure(t *testing.T) {
	tenure := newTenure(context.Background(), "test", 7, func() bool { return true })
	refused := &fence.RefusedError{Election: "billing", Token: 8, Newest: 9}
	lose := func(bool) error { return errDeposed }
	require.Equal(t, codes.FailedPrecondition, status.Code(tenure.judge(context.Background(), refused, eldest.ErrDeposed, lose)))
	ended := &eldest.OpError{Op: "fenced request", Election: "billing", Err: context.Canceled}
	require.Equal(t, errDeposed, tenure.judge(context.Background(), ended, errDeposed, lose), "its context has ended")
}
