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
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/fence"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

// Row 45: the context of a unary handler ends with the tenure, and the handler may give its own
// answer within the grace. An answer that the context was cancelled becomes LostLeadership.
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
	everywhere(t, s, func(t *testing.T, n, leader *node) {
		for i, in := range []string{"done", "own", "cause", "status", "wrapped"} {
			token := eldest.Token(7 + i)
			done := n.ask(in)
			etcdtest.Take(t, began, "the handler")
			leader.loses()
			err := etcdtest.Take(t, done, "the answer")
			switch in {
			case "done":
				require.NoError(t, err, "what was done is said")
			case "own":
				requireCode(t, codes.Aborted, err)
			default:
				detail := requireRetry(t, err)
				require.Equal(t, int64(token), detail.GetToken())
				require.Equal(t, "leader", detail.GetNodeId())
				require.False(t, detail.GetNothingApplied(), "the handler may have done anything")
			}
			leader.leads(token+1, s)
			n.follows(leader, token+1) // has no effect if it leads itself
		}
	}, grace(etcdtest.Patience))
}

// Row 45: if a handler ignores its context, the node answers after the grace; the tenure does not
// end before the handler has returned.
func TestRequirement45StubbornHandler(t *testing.T) {
	s, began, release := held()
	everywhere(t, s, func(t *testing.T, n, leader *node) {
		done := n.ask("")
		etcdtest.Take(t, began, "the handler")
		over := asking(func() error { leader.loses(); return nil })
		require.False(t, requireRetry(t, etcdtest.Take(t, done, "the answer")).GetNothingApplied())
		require.Empty(t, over, "the tenure is over while a handler runs")
		release <- struct{}{}
		require.NoError(t, etcdtest.Take(t, over, "the end of the tenure"))
	}, grace(time.Millisecond))
}

// Row 45: a stream is answered at once when its handler waits in it, however long the grace: in a
// receive, or just before it, or in a send that is blocked by the caller's flow control. Further
// operations of the handler fail.
func TestRequirement45StreamsEnd(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan [2]error, 1)
	big := string(make([]byte, 1<<16))
	s := &script{stream: func(stream grpc.ServerStream) error {
		if err := replies(stream, "first"); err != nil {
			return err
		}
		began <- struct{}{}
		var err error
		if method, _ := grpc.MethodFromServerStream(stream); method == serverMethod {
			for err == nil { // until flow control blocks it
				err = replies(stream, big)
			}
		} else {
			_, err = received(stream)
		}
		ended <- [2]error{err, replies(stream, "more")}
		return err
	}}
	everywhere(t, s, func(t *testing.T, n, leader *node) {
		for token := eldest.Token(8); token < 20; token++ {
			stream := n.open([]string{bidiMethod, serverMethod}[token%2])
			stream.expect("first")
			etcdtest.Take(t, began, "the handler")
			leader.loses()
			require.False(t, requireRetry(t, stream.end()).GetNothingApplied())
			for _, err := range etcdtest.Take(t, ended, "the handler's end") {
				requireCode(t, codes.Unavailable, err)
			}
			leader.leads(token, s)
			n.follows(leader, token) // has no effect if it leads itself
		}
	}, grace(time.Hour))
}

// Row 45: a unary call begins when its message has arrived, and not before: the end of a tenure
// before that does not affect it.
func TestRequirement45MessageThatIsOnItsWay(t *testing.T) {
	t.Parallel()
	everywhere(t, echoing, func(t *testing.T, n, leader *node) {
		stream := n.open(unaryMethod)
		stream.send("the message, and no half-close")
		tenure := leader.router.Now().Tenure
		require.Never(t, func() bool { return tenure.Running() > 0 }, 50*time.Millisecond, time.Millisecond)
		leader.loses()
		leader.leads(8, echoing)
		n.follows(leader, 8)                // has no effect if it leads itself
		time.Sleep(1200 * time.Millisecond) // the connection to the last tenure's leader is closed
		require.NoError(t, stream.CloseSend())
		stream.expect("the message, and no half-close")
		require.NoError(t, stream.end())
		require.EqualValues(t, 1, leader.calls.Load())
	}, grace(time.Second))
}

// Row 45: nor does an end while the message is being decoded for the handler, which takes time if
// it is large.
func TestRequirement45MessageThatIsBeingDecoded(t *testing.T) {
	everywhere(t, echoing, func(t *testing.T, n, leader *node) {
		done := asking(func() error {
			return n.call("large", grpc.CallContentSubtype(slowCodec{}.Name()), grpc.ForceCodec(jsonCodec{})) // slow at the leader only
		})
		late, soon := make(chan struct{}), make(chan struct{})
		close(soon)
		decodes <- late
		tenure := leader.router.Now().Tenure
		leader.router.Leave(tenure, errDeposed)
		tenure.Cancel(errDeposed)
		close(late)
		tenure.Finish(errDeposed)
		leader.leads(8, echoing)
		n.follows(leader, 8) // has no effect if it leads itself
		select {
		case decodes <- soon:
			require.NoError(t, etcdtest.Take(t, done, "the answer"))
		case err := <-done:
			require.NoError(t, err, "it could have gone to the next tenure")
		}
		require.EqualValues(t, 1, leader.calls.Load())
	})
}

// Row 45: the refusals of a guard, in a tenure that has not ended yet at this node. The handler of
// a stream may have applied something before. Row 53: a refusal for another election or tenure is
// the service's own answer.
func TestRequirement45GuardRefusals(t *testing.T) {
	guard := &txn.GuardError{Election: "test", Wanted: 7}
	refusals := map[string]struct {
		err     error
		code    codes.Code
		nothing bool
	}{
		// The handler may have written before.
		"guard":       {guard, codes.Unavailable, false},
		"wrapped":     {fmt.Errorf("put: %w", &eldest.OpError{Op: "x", Err: guard}), codes.Unavailable, false},
		"not leading": {fmt.Errorf("%w: %w", eldest.ErrNotLeading, eldest.ErrSessionLost), codes.Unavailable, false},
		// The handler reports that it has not.
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
	everywhere(t, s, func(t *testing.T, n, _ *node) {
		for name, want := range refusals {
			err := n.call(name)
			requireCode(t, want.code, err)
			stream := n.open(bidiMethod)
			stream.send(name)
			streamed := stream.end()
			requireCode(t, want.code, streamed)
			if want.code == codes.Unavailable {
				require.Equal(t, want.nothing, requireRetry(t, err).GetNothingApplied(), name)
				require.False(t, requireRetry(t, streamed).GetNothingApplied(), name)
			}
		}
	})
}

// Row 45: if the caller ends the call, the answer is the caller's code, also in a tenure that ends.
// Row 53: the end of a tenure does not change a refusal for another election.
func TestRow53FenceAtTheEndOfATenure(t *testing.T) {
	background := context.Background()
	ended, cancel := context.WithCancel(background)
	cancel()
	late, cancel := context.WithTimeout(background, 0)
	defer cancel()
	fenced := &fence.RefusedError{Election: "billing", Token: 8, Newest: 9}
	sent := &eldest.OpError{Op: "fenced request", Election: "billing", Err: context.Canceled}
	judge := func(caller context.Context, err, lost error) error {
		return tenureID{"test", 7}.classify(caller, err, lost, func(bool) error { return errDeposed })
	}
	requireCode(t, codes.Canceled, judge(ended, context.Canceled, errDeposed))
	requireCode(t, codes.DeadlineExceeded, judge(late, context.Canceled, errDeposed))
	require.Equal(t, errDeposed, judge(background, context.Canceled, errDeposed))
	require.Equal(t, io.EOF, judge(background, io.EOF, errDeposed), "none of ours")
	require.Equal(t, context.Canceled, judge(background, context.Canceled, nil), "the tenure goes on")
	requireCode(t, codes.FailedPrecondition, judge(background, fenced, eldest.ErrDeposed))
	require.Equal(t, errDeposed, judge(background, sent, errDeposed), "its context has ended")
}

// I9: a handler begins only in a tenure that holds at that moment, read from the clock, before any
// timer has fired. The message of a unary call may arrive long after the call.
func TestHandlerBeginsOnlyWhileTheTenureHolds(t *testing.T) {
	n := newNode(t, "n", waits(50*time.Millisecond))
	var past atomic.Bool
	n.leadsWhile(7, echoing, func() bool { return !past.Load() })
	n.answers("")
	call := n.open(unaryMethod)
	time.Sleep(2 * n.cfg.Wait) // the time in which the caller sends its message does not count
	past.Store(true)
	n.untouched("the deadline has passed")
	call.send("late")
	require.NoError(t, call.CloseSend())
	require.True(t, requireRetry(t, call.end()).GetNothingApplied())
	require.EqualValues(t, 1, n.calls.Load())
}

// A handler receives the end of the tenure from a receive, read from the clock, and returns it
// after the tenure has ended: the details of the answer have it.
func TestEndOfTheTenureIsMetTwice(t *testing.T) {
	late := make(chan struct{})
	n := newNode(t, "n")
	var past atomic.Bool
	n.leadsWhile(7, &script{stream: func(stream grpc.ServerStream) error {
		err := stream.RecvMsg(&message{})
		close(late)
		<-stream.Context().Done()
		return err
	}}, func() bool { return !past.Load() })
	call := n.open(bidiMethod)
	etcdtest.Eventually(t, func() bool { return n.calls.Load() == 1 }, "the handler")
	past.Store(true)
	call.send("late")
	etcdtest.Take(t, late, "the receive")
	n.loses()
	requireRetry(t, call.end())
}

// A call that came too late for a tenure is served in the next one.
func TestCallBetweenTenures(t *testing.T) {
	n := newNode(t, "n")
	tenure := n.leads(7, echoing)
	tenure.Finish(errDeposed) // the route is still to this tenure
	done := n.ask("")
	n.router.Leave(tenure, errDeposed)
	n.leads(8, echoing)
	require.NoError(t, etcdtest.Take(t, done, "the answer"))
	require.EqualValues(t, 1, n.calls.Load())
}

// Row 53: a service of one election is fenced for another one, whose leaders call it. A leader
// whose token is too old receives this, at any node and in unary calls and streams, and not that
// its request can be retried.
func TestRow53FenceOfAnotherElection(t *testing.T) {
	fenced, err := fence.New(fence.Config{Elections: []string{"billing"}, Store: &fence.Memory{}})
	require.NoError(t, err)
	require.NoError(t, fenced.Admit(t.Context(), "billing", 9))
	everywhere(t, echoing, func(t *testing.T, n, leader *node) {
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
		require.Zero(t, leader.calls.Load())
	}, func(cfg *Config) { cfg.Unary, cfg.Stream = fenced.UnaryServer(), fenced.StreamServer() })
}

// billing is a tenure of another election, whose end is not known yet.
type billing struct{}

func (billing) Election() string    { return "billing" }
func (billing) Token() eldest.Token { return 8 }
func (billing) Err() error          { return nil }

// LostLeadership does not return the detail of another election, also if there are details of both.
// withoutLost removes it and keeps the others.
func TestLostLeadershipOfAnElection(t *testing.T) {
	own := refusal{election: "e", token: 7, node: "n", untouched: true, why: "because"}.err()
	for _, err := range []error{own, fmt.Errorf("put: %w", own)} {
		lost, ok := LostLeadership(err, "e")
		require.True(t, ok)
		require.EqualValues(t, 7, lost.GetToken())
		require.True(t, lost.GetNothingApplied())
	}
	another := refusal{election: "another", token: 9, untouched: true, why: "because"}.err()
	plain := errors.New("plain")
	for _, err := range []error{nil, plain, status.Error(codes.Unavailable, "without details"), another} {
		_, ok := LostLeadership(err, "e")
		require.False(t, ok, "of another election")
	}
	st, err := status.Convert(another).WithDetails(wrapperspb.String("kept"), &curatorpb.LostLeadership{Election: "e", Token: 8})
	require.NoError(t, err)
	lost, ok := LostLeadership(st.Err(), "e")
	require.True(t, ok)
	require.EqualValues(t, 8, lost.GetToken())

	require.NoError(t, withoutLost(nil, anyLost))
	require.Equal(t, plain, withoutLost(plain, anyLost))
	require.Equal(t, st.Err(), withoutLost(st.Err(), func(*curatorpb.LostLeadership) bool { return false }))
	some := withoutLost(st.Err(), func(lost *curatorpb.LostLeadership) bool { return lost.GetElection() != "e" })
	require.Len(t, status.Convert(some).Details(), 2)
	none := withoutLost(fmt.Errorf("wrapped: %w", st.Err()), anyLost)
	requireCode(t, codes.Unavailable, none, "wrapped: ")
	require.Len(t, status.Convert(none).Details(), 1)
	require.Equal(t, "kept", status.Convert(none).Details()[0].(*wrapperspb.StringValue).GetValue())
}

// Row 51: a handler writes, calls a service of another election, or of the same one, which has no
// leader, and returns that error unchanged. The client does not send again: something was applied.
func TestRow51AnotherElectionsLossIsNotThisOnes(t *testing.T) {
	for _, election := range []string{"another", "test"} {
		another := newNode(t, "another", waits(time.Millisecond), func(cfg *Config) { cfg.Elector.Election = election })
		var written int
		s := &script{unary: func(ctx context.Context, _ *message) (*message, error) {
			written++
			_, err := another.unary(ctx, "")
			return nil, err
		}, stream: func(stream grpc.ServerStream) error {
			written++
			_, err := another.unary(stream.Context(), "")
			return err
		}}
		everywhere(t, s, func(t *testing.T, n, _ *node) {
			for name, send := range map[string]func() error{
				"unary":         func() error { return n.call("") },
				"stream":        func() error { return n.open(bidiMethod).end() },
				"local, unary":  func() error { return n.conn.Invoke(etcdtest.Context(t), "/test.Local/Unary", &message{}, &message{}) },
				"local, stream": func() error { return n.open("/test.Local/Bidi").end() },
			} {
				written = 0
				for range 3 { // a client's retries
					err := send()
					requireCode(t, codes.Unavailable, err, `election "`+election)
					require.Empty(t, status.Convert(err).Details(), "%s: another request's loss", name)
					if lost, ok := LostLeadership(err, "test"); !ok || !lost.GetNothingApplied() {
						break
					}
				}
				require.Equal(t, 1, written, "%s was applied more than once", name)
			}
		}, func(cfg *Config) {
			cfg.Local = func(r grpc.ServiceRegistrar) { r.RegisterService(describe("test.Local"), s) }
		})
	}
}

// Row 51: a leader, for example of an earlier version, may still pass on a detail of another
// election's curator; the node that forwarded does not.
func TestRow51AnotherElectionsLossAtTheHop(t *testing.T) {
	said := refusal{election: "another", token: 9, node: "n", untouched: true, why: "because"}
	leader := newNode(t, "leader", intercept(func(context.Context) error { return said.err() }))
	leader.leads(7, echoing)
	follower := newNode(t, "follower")
	follower.follows(leader, 7)
	_, ok := LostLeadership(leader.call(""), "another")
	require.True(t, ok, "INVALID: the leader has said nothing")
	err := follower.call("")
	require.ErrorContains(t, err, "because")
	require.Empty(t, status.Convert(err).Details(), "it passed the hop")
	said.election = "test"
	require.True(t, requireRetry(t, follower.call("")).GetNothingApplied(), "the leader's own")
}

// A tenure that is given up voluntarily waits for its unary calls, while the node still leads, and
// does not wait for streams.
func TestSettle(t *testing.T) {
	began, release := make(chan struct{}, 2), make(chan struct{})
	n := newNode(t, "n")
	tenure := n.leads(7, &script{unary: func(ctx context.Context, in *message) (*message, error) {
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
	}})
	unary, stream := n.ask(""), n.open(bidiMethod)
	etcdtest.Take(t, began, "a handler")
	etcdtest.Take(t, began, "the other")
	n.router.Leave(tenure, errDeposed)
	settled := asking(func() error { tenure.Drain(t.Context(), time.Hour); return nil })
	release <- struct{}{}
	require.NoError(t, etcdtest.Take(t, settled, "the unary call"))
	require.NoError(t, etcdtest.Take(t, unary, "its answer"))
	require.NoError(t, tenure.Cause())
	tenure.Finish(errDeposed)
	requireRetry(t, stream.end())
}
