package curator

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// documented are the codes that a call may end with if no request is malformed (doc.go), and the
// code that the handlers of this test return.
var documented = []codes.Code{codes.OK, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.AlreadyExists}

// Row 46: ten thousand changes of the route while calls of all kinds are in flight at two nodes.
// Nothing panics. Each call ends, with a documented code. No handler runs twice for one call, or in
// a tenure that is over. The events without Hop are what the callers have seen, code by code, and
// nothing is left under way. No buffer is freed twice, which would panic.
func TestRequirement46TenThousandFlips(t *testing.T) {
	t.Parallel()
	const flips = 10_000 // that change something
	f := &flipping{t: t}
	var told [2]events
	pool := newBuffers()
	short := func(cfg *Config) { cfg.Wait = 5 * time.Millisecond; grace(time.Millisecond)(cfg) }
	nodes := [2]*node{newNode(t, "a", short, told[0].hooks, pool.join), newNode(t, "b", short, told[1].hooks, pool.join)}
	ctx, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for i := range 24 { // most of them wait
		callers.Go(func() {
			for ctx.Err() == nil {
				f.call(nodes[i%2], i%2, i%6 < 2)
			}
		})
	}
	for changed := 0; changed < flips; {
		was := [2]*route{nodes[0].router.Now(), nodes[1].router.Now()}
		f.flip(nodes[0], nodes[1])
		if same(was[0], nodes[0].router.Now()) && same(was[1], nodes[1].router.Now()) {
			continue
		}
		if changed++; changed%20 == 0 { // otherwise hardly any call would be answered
			done := f.ended.Load()
			etcdtest.Eventually(t, func() bool { return f.ended.Load() > done+9 }, "calls go on")
		}
	}
	stop()
	over := asking(func() error { callers.Wait(); return nil })
	for len(over) == 0 { // some calls wait for the end of their tenure
		f.flip(nodes[0], nodes[1])
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, <-over)

	all := make(map[codes.Code]int)
	for i, n := range nodes {
		etcdtest.Eventually(t, func() bool { return n.Load() == Load{} }, "nothing is under way")
		unary, refused := make(map[codes.Code]int), 0
		for _, e := range told[i].take(t) {
			if e.Hop || e.Method != unaryMethod {
				continue
			}
			unary[e.Code]++
			require.Equal(t, e.Code == codes.Unavailable, e.Refusal != 0, "%+v", e)
			if e.Refusal != 0 {
				refused++
			}
		}
		require.Equal(t, f.unary[i], unary, "the events of unary calls, whose callers set no deadline")
		require.Positive(t, refused)
		for code, times := range f.streams[i] {
			all[code] += times
		}
	}
	t.Logf("%d calls: streams %v, unary %v; %d handlers", f.ended.Load(), all, f.unary, f.begun.Load())
	for code := range all {
		require.Contains(t, documented, code)
	}
	for _, code := range documented {
		require.Positive(t, all[code], "no call ended with %v: this proves little", code)
	}
	f.seen.Range(func(id, times any) bool {
		require.EqualValues(t, 1, times.(*atomic.Int64).Load(), "handlers for call %.10v", id)
		return true
	})
}

type flipping struct {
	t     *testing.T
	token eldest.Token
	// leader is the node that leads, or nil.
	leader *node

	ids, ended, begun atomic.Int64
	seen              sync.Map

	mu             sync.Mutex
	unary, streams [2]map[codes.Code]int // by node: how calls ended
}

// flip makes the next change: a new leader, a follower that follows it or a wrong leader, or an
// unknown leader.
func (f *flipping) flip(a, b *node) {
	n, other := a, b
	if rand.N(2) == 0 {
		n, other = b, a
	}
	switch rand.N(5) {
	case 0:
		n.router.Unknown(errors.New("flipped"))
	case 1: // a wrong one
		n.follows(other, f.token+1)
	case 2: // the right one
		if f.leader == other {
			n.follows(other, f.token)
		}
	default:
		if f.leader != nil {
			f.leader.loses()
		}
		f.token += 2
		f.leader = n
		n.leads(f.token, f.script(f.token))
		other.follows(n, f.token)
	}
}

// script is what a tenure serves. Its handlers check that they run once for a call.
func (f *flipping) script(token eldest.Token) *script {
	begins := func(ctx context.Context, id string) error {
		f.begun.Add(1)
		times, _ := f.seen.LoadOrStore(id, &atomic.Int64{})
		times.(*atomic.Int64).Add(1)
		switch rand.N(4) {
		case 0:
			return status.Error(codes.AlreadyExists, "the handler says")
		case 1:
			<-ctx.Done()
			return fmt.Errorf("token %d: %w", token, ctx.Err())
		}
		return nil
	}
	return &script{unary: func(ctx context.Context, in *message) (*message, error) {
		return in, begins(ctx, string(in.GetValue()))
	}, stream: func(stream grpc.ServerStream) error {
		id, err := received(stream)
		if err == nil {
			err = begins(stream.Context(), id)
		}
		if err != nil {
			return err
		}
		return echoes(stream)
	}}
}

// call makes a call and counts how it ends: a unary one without a deadline, or a stream with one.
func (f *flipping) call(n *node, which int, unary bool) {
	id := fmt.Sprintf("%d%2000d", f.ids.Add(1), 0) // gRPC does not pool the buffers of small messages
	counts := &f.unary[which]
	var err error
	if unary {
		_, err = n.unary(context.Background(), id)
	} else {
		counts = &f.streams[which]
		most := []int{30, 30, 30, 300}[rand.N(4)] // on a busy machine shorter ones reach no handler
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+rand.N(most))*time.Millisecond)
		if rand.N(10) == 0 {
			time.AfterFunc(rand.N(5*time.Millisecond), cancel)
		}
		err = f.stream(ctx, n, id)
		cancel()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if *counts == nil {
		*counts = make(map[codes.Code]int)
	}
	(*counts)[status.Code(err)]++
	f.ended.Add(1)
}

func (f *flipping) stream(ctx context.Context, n *node, id string) error {
	s, err := n.conn.NewStream(ctx, anyStream, bidiMethod)
	if err != nil {
		return err
	}
	for range 1 + rand.N(3) {
		if s.SendMsg(&message{Value: []byte(id)}) != nil {
			break
		}
	}
	if rand.N(2) == 0 {
		_ = s.CloseSend()
	}
	return (&flow{ClientStream: s}).end()
}

// same reports whether two routes are equivalent.
func same(x, y *route) bool {
	return x.Tenure == y.Tenure && x.Peer == y.Peer && (x.Reason == nil) == (y.Reason == nil)
}

// While leaders change, refuse new calls, and finish the calls that have begun there, no call
// fails: each begins once, and its messages arrive once and in order, however often it was tried.
// At the end nothing is held.
func TestCallsGoElsewhereAsTheyCame(t *testing.T) {
	t.Parallel()
	leaders := []*node{newNode(t, "a", patient), newNode(t, "b", patient)}
	var refused atomic.Int64
	follower := newNode(t, "follower", patient, refusals(&refused))
	var begun sync.Map
	begins := func(in string) error {
		if _, twice := begun.LoadOrStore(in, true); twice {
			return fmt.Errorf("it has begun twice: %.20s", in)
		}
		return nil
	}
	s := &script{stream: func(stream grpc.ServerStream) error {
		in, err := received(stream)
		if err == nil {
			err = errors.Join(begins(in), replies(stream, in))
		}
		if err != nil {
			return err
		}
		return echoes(stream)
	}, unary: func(_ context.Context, in *message) (*message, error) {
		return in, begins(string(in.GetValue()))
	}}
	ctx, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	var calls atomic.Int64
	for i := range 12 {
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprint(i, "-", n, " ")
				var err error
				if i < 4 {
					err = <-follower.ask(name)
				} else {
					err = counts(etcdtest.Context(t), follower, name)
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	token := eldest.Token(7)
	for changes := time.Now(); time.Since(changes) < 2*time.Second || refused.Load() < 100; token++ {
		next, refusing := leaders[rand.N(2)], rand.N(2) == 0
		tenure := next.leadsWhile(token, s, func() bool { return !refusing })
		follower.follows(next, token)
		time.Sleep(rand.N(50 * time.Millisecond))
		next.router.Leave(tenure, errDeposed)
	}
	leaders[0].leads(token, s)
	follower.follows(leaders[0], token)
	stop()
	callers.Wait()
	t.Logf("%d calls, %d were refused before they began", calls.Load(), refused.Load())
	follower.empty()
}

// counts sends numbered messages in a stream, with random pauses, and requires that they are echoed
// in order.
func counts(ctx context.Context, n *node, name string) error {
	stream, err := n.conn.NewStream(ctx, anyStream, bidiMethod)
	if err != nil {
		return err
	}
	many := 1 + rand.N(8)
	content := func(i int) string { return fmt.Sprint(name, i, strings.Repeat(" ", i<<10)) }
	sending := asking(func() error {
		for i := range many {
			if err := stream.SendMsg(&message{Value: []byte(content(i))}); err != nil {
				return err
			}
			time.Sleep(rand.N(10 * time.Millisecond))
		}
		return stream.CloseSend()
	})
	for i := 0; ; i++ {
		m := &message{}
		switch err := stream.RecvMsg(m); {
		case errors.Is(err, io.EOF) && i == many:
			return <-sending
		case err != nil:
			return fmt.Errorf("%d of %d: %w", i, many, err)
		case string(m.GetValue()) != content(i):
			return fmt.Errorf("%.30q instead of number %d", m.GetValue(), i)
		}
	}
}
