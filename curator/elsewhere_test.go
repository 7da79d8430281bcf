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

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// While leaders come and go, refuse what comes, and let end what has begun there, no call fails:
// each begins once, and its messages come once and in order, however often it was tried. Nothing
// is held in the end, and no buffer is given back twice, which would panic.
func TestCallsGoElsewhereAsTheyCame(t *testing.T) {
	t.Parallel()
	p := &pool{BufferPool: mem.DefaultBufferPool()}
	patient := func(cfg *Config) { cfg.Wait, cfg.Grace = etcdtest.Patience, etcdtest.Patience }
	leaders := []*node{newNode(t, "a", patient), newNode(t, "b", patient)}
	var refused atomic.Int64
	follower := newNode(t, "follower", patient, p.join, func(cfg *Config) {
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithStatsHandler(trailers{&refused}))
	})
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
			err = begins(in)
		}
		if err == nil {
			err = replies(stream, in)
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
	var ended atomic.Int64
	for i := range 12 {
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprint(i, "-", n, " ")
				var err error
				if i < 4 {
					var out string
					if out, err = follower.unary(etcdtest.Context(t), name); out != name {
						err = errors.Join(err, fmt.Errorf("%q instead of %q", out, name))
					}
				} else {
					err = counts(etcdtest.Context(t), follower, name)
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				ended.Add(1)
			}
		})
	}
	last := leaders[0]
	for token, changes := eldest.Token(7), time.Now(); time.Since(changes) < 2*time.Second || refused.Load() < 100; token++ {
		next := leaders[rand.N(2)]
		tenure, lame := next.tenure(token, s), rand.N(2) == 0
		tenure.holds = func() bool { return !lame }
		next.front.router.lead(tenure)
		follower.front.router.follow(next.as(token))
		time.Sleep(time.Duration(rand.N(int64(50 * time.Millisecond))))
		next.front.router.leave(tenure, errDeposed)
		last = next
	}
	last.leads(1<<40, s)
	follower.front.router.follow(last.as(1 << 40))
	stop()
	callers.Wait()
	t.Logf("%d calls, %d were refused before they began", ended.Load(), refused.Load())
	etcdtest.Eventually(t, func() bool { calls, bytes := follower.front.lobby.load(); return calls+bytes == 0 }, "nothing is held")
	require.Empty(t, follower.front.lobby.their)
}

// counts has a stream of numbered messages echoed, which are sent at any pace.
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
			time.Sleep(time.Duration(rand.N(int64(10 * time.Millisecond))))
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
