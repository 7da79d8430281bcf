package curator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// documented are the codes that a call may end with when nobody's request is malformed
// (doc.go), and the one that the handlers of this test give.
var documented = map[codes.Code]bool{
	codes.OK: true, codes.Unavailable: true, codes.DeadlineExceeded: true, codes.Canceled: true, codes.AlreadyExists: true,
}

// Row 46: ten thousand changes of the route while calls of all kinds are in flight at
// two nodes. Nothing panics, each call ends, with a documented code; no handler runs
// twice for one call, nor in a tenure that is over.
func TestRequirement46TenThousandFlips(t *testing.T) {
	t.Parallel()
	const flips = 10_000 // that change something
	f := &flipping{t: t}
	a, b := newNode(t, "a", f.config), newNode(t, "b", f.config)
	ctx, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for i := range 24 { // most of them wait
		callers.Go(func() { f.call(ctx, []*node{a, b}[i%2], i%6) })
	}
	for changed := 0; changed < flips; {
		wasA, wasB := a.front.router.Now(), b.front.router.Now()
		f.flip(a, b)
		if same(wasA, a.front.router.Now()) && same(wasB, b.front.router.Now()) {
			continue
		}
		if changed++; changed%20 == 0 { // or else hardly a call would come through
			done := f.ended.Load()
			etcdtest.Eventually(t, func() bool { return f.ended.Load() > done+9 }, "calls go on")
		}
	}
	stop()
	ended := make(chan struct{})
	go func() { callers.Wait(); close(ended) }()
	etcdtest.Take(t, ended, "all calls end")

	counts := make(map[codes.Code]int)
	f.codes.Range(func(c, count any) bool {
		code, n := c.(codes.Code), count.(*atomic.Int64).Load()
		require.True(t, documented[code], "%v is not documented", code)
		counts[code] = int(n)
		return true
	})
	t.Logf("%d calls: %v; %d handlers", f.ended.Load(), counts, f.begun.Load())
	for code := range documented {
		require.Positive(t, counts[code], "no call ended with %v: this proves little", code)
	}
	f.seen.Range(func(id, times any) bool {
		require.EqualValues(t, 1, times.(*atomic.Int64).Load(), "handlers for call %v", id)
		return true
	})
}

type flipping struct {
	t     *testing.T
	token eldest.Token
	// leader is who leads, with what; nil while nobody does.
	leader *node
	tenure *tenure

	ids, ended, begun atomic.Int64
	codes, seen       sync.Map
}

func (f *flipping) config(cfg *Config) {
	cfg.Wait, cfg.Grace = 5*time.Millisecond, time.Millisecond
}

// flip makes the next change: a new leader, a follower that hears of it or has heard
// something wrong, nobody known.
func (f *flipping) flip(a, b *node) {
	n, other := a, b
	if rand.N(2) == 0 {
		n, other = b, a
	}
	switch rand.N(5) {
	case 0:
		n.front.router.neither(errors.New("flipped"))
	case 1: // a wrong one
		n.front.router.follow(other.as(f.token + 1))
	case 2: // the right one
		if f.leader == other {
			n.front.router.follow(other.as(f.token))
		}
	default:
		if f.leader != nil {
			f.leader.loses(f.tenure, errDeposed)
		}
		f.token += 2
		f.leader, f.tenure = n, n.leads(f.token, f.script(f.token))
		other.front.router.follow(n.as(f.token))
	}
}

// script is what a tenure serves. Its handlers check that they run in it.
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
	return &script{
		unary: func(ctx context.Context, in *message) (*message, error) {
			return in, begins(ctx, string(in.GetValue()))
		},
		stream: func(stream grpc.ServerStream) error {
			id, err := received(stream)
			if err != nil {
				return err
			}
			if err := begins(stream.Context(), id); err != nil {
				return err
			}
			return echoes(stream)
		},
	}
}

// call makes calls until ctx ends, one after another, and counts how they end.
func (f *flipping) call(ctx context.Context, n *node, kind int) {
	for ctx.Err() == nil {
		id := fmt.Sprintf("%d", f.ids.Add(1))
		short, cancel := context.WithTimeout(context.Background(), time.Duration(1+rand.N(30))*time.Millisecond)
		if rand.N(10) == 0 {
			time.AfterFunc(time.Duration(rand.N(int64(5*time.Millisecond))), cancel)
		}
		var err error
		if kind < 2 {
			_, err = n.unary(short, id)
		} else {
			err = f.stream(short, n, id)
		}
		cancel()
		count, _ := f.codes.LoadOrStore(status.Code(err), &atomic.Int64{})
		count.(*atomic.Int64).Add(1)
		f.ended.Add(1)
	}
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
	for {
		switch err := s.RecvMsg(&message{}); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// same reports whether two routes lead to the same place.
func same(x, y *route) bool {
	return x.tenure == y.tenure && x.peer == y.peer && (x.reason == nil) == (y.reason == nil)
}
