package curator

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/rawframe"
)

// What the caller sends while its call waits for the next leader comes there after what it had
// sent before.
func TestMessagesWhileTheCallWaits(t *testing.T) {
	s := &script{stream: echoes}
	last, next := newNode(t, "last"), newNode(t, "next")
	last.lame(t, s)
	var refused atomic.Int64
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.Wait = etcdtest.Patience
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithStatsHandler(trailers{&refused}))
	})
	follower.front.router.follow(last.as(7))
	follower.front.lookAgain = func(int) time.Duration { return time.Hour }
	large := strings.Repeat("x", 2*replayed)
	for range 5 {
		refused.Store(0)
		stream := follower.open(etcdtest.Context(t), bidiMethod)
		stream.send("first")
		etcdtest.Eventually(t, func() bool { calls, _ := follower.front.lobby.load(); return calls == 1 && refused.Load() == 1 }, "it waits")
		stream.send(large)
		time.Sleep(10 * time.Millisecond) // so that it has come
		next.leads(8, s)
		follower.front.router.follow(next.as(8))
		stream.send("third")
		stream.expect("first")
		stream.expect(large)
		stream.expect("third")
		require.NoError(t, stream.CloseSend())
		require.NoError(t, stream.end())
		follower.front.router.follow(last.as(7))
	}
}

// A call that is tried often leaves nothing behind at each try.
func TestTriesLeaveNothing(t *testing.T) {
	s := &script{stream: echoes}
	last := newNode(t, "last")
	last.lame(t, s)
	var refused atomic.Int64
	follower := newNode(t, "follower", func(cfg *Config) {
		cfg.Wait = etcdtest.Patience
		cfg.PeerOptions = append(cfg.PeerOptions, grpc.WithStatsHandler(trailers{&refused}))
	})
	follower.front.lookAgain = func(int) time.Duration { return time.Millisecond }
	follower.front.router.follow(last.as(7))
	stream := follower.open(etcdtest.Context(t), bidiMethod)
	stream.send("first")
	etcdtest.Eventually(t, func() bool { return refused.Load() > 10 }, "it is tried")
	had := runtime.NumGoroutine()
	etcdtest.Eventually(t, func() bool { return refused.Load() > 210 }, "it is tried again")
	require.Less(t, runtime.NumGoroutine(), had+50)
}

// slow is a caller that sends messages of the sizes that come.
type slow struct {
	grpc.ServerStream
	pool  *counted
	sizes chan int
}

func (s slow) RecvMsg(m any) error {
	data := mem.BufferSlice{mem.NewBuffer(s.pool.Get(<-s.sizes), s.pool)}
	defer data.Free()
	return rawframe.Codec{}.Unmarshal(data, m)
}

// What comes while a call waits is kept if there is room; if there is none, it is not held, and
// the call is over.
func TestMessagesThatComeWhileACallWaitsAreBounded(t *testing.T) {
	const room = 10 << 10 // more than gRPC's pools think worth their while
	for _, fits := range []bool{true, false} {
		caller := slow{pool: &counted{}, sizes: make(chan int)}
		r := &replay{ServerStream: caller, lobby: newLobby(1, 2*room), from: "the test"}
		pump := r.again()
		ended := make(chan error, 1)
		go func() {
			for {
				var f rawframe.Frame
				err := pump.RecvMsg(&f)
				f.Free()
				if err != nil {
					ended <- err
					return
				}
			}
		}()
		caller.sizes <- room / 2
		etcdtest.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.receiving && len(r.kept) == 1 }, "it receives the next one")
		require.True(t, pump.takeBack())
		last := room / 2
		if !fits {
			last = 2 * room
		}
		caller.sizes <- last
		require.ErrorIs(t, etcdtest.Take(t, ended, "the end of the pump"), errSuperseded)
		require.Equal(t, !fits, r.crowded())
		require.Equal(t, fits, r.roomy())
		_, bytes := r.lobby.load()
		require.LessOrEqual(t, bytes, room)
		var f rawframe.Frame
		next := r.again()
		require.NoError(t, next.RecvMsg(&f))
		require.Equal(t, room/2, f.Data.Len())
		if fits {
			require.Equal(t, 2, caller.pool.out)
			require.NoError(t, next.RecvMsg(&f))
			require.Equal(t, last, f.Data.Len())
		} else {
			require.Equal(t, 1, caller.pool.out, "it is held")
			require.ErrorIs(t, next.RecvMsg(&f), errNoRoom)
		}
		f.Free()
		r.drop()
		require.Zero(t, caller.pool.out)
		require.Zero(t, r.lobby.all)
	}
}
