package curator

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// twoFields writes values of two fields, as programs do that are older than package identity.
type twoFields struct{ identity.Protobuf }

func (c twoFields) Encode(id identity.Identity) ([]byte, error) {
	return c.Protobuf.Encode(identity.Identity{NodeID: id.NodeID, TTL: id.TTL})
}

// Row 38: a leader whose value has two fields is reached at the address that Config.AddressOf
// returns. Until that is known, calls wait as if there were no leader. (Errors, and the address of a
// value that has one, are tested in package elector.)
func TestRequirement38AddressOfALeaderWithTwoFields(t *testing.T) {
	election := etcdtest.Election(t)
	leader := run(t, election, "leader", func(cfg *Config) { cfg.Elector.Codec = twoFields{} })
	leader.becomes(elector.Leading)
	answers := make(chan string)
	follower := run(t, election, "follower", func(cfg *Config) {
		cfg.Elector.AddressOf = func(ctx context.Context, l elector.Leader) (string, error) {
			if l.NodeID != "leader" || l.Address+l.Instance != "" {
				t.Errorf("the leader is %+v", l)
			}
			select {
			case address := <-answers:
				return address, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	})
	stream := follower.leadersFor(etcdtest.Context(t))
	require.Empty(t, stream.until(roleFollowing, "").GetLeaderAddress())
	follower.requireHealth(false, false, true, false)

	waits := asking(func() error { _, err := follower.unary(etcdtest.Context(t), ""); return err })
	follower.holds(1, "it waits, while the function blocks")
	answers <- ""
	require.Empty(t, waits)
	answers <- leader.address // it is asked again
	require.NoError(t, etcdtest.Take(t, waits, "the answer"))
	for r := stream.next(); r.GetLeaderAddress() != leader.address; r = stream.next() {
		require.Empty(t, r.GetLeaderAddress())
	}
	follower.requireHealth(true, false, true, false)
}

// The address of a leader changes within its tenure: followers forward to the new one, in the same
// tenure; a call under way is answered over the old connection, and no call is lost. Every node
// reports the new address.
func TestAddressChangesWithinATenure(t *testing.T) {
	election := etcdtest.Election(t)
	began, release := make(chan struct{}, 1), make(chan struct{})
	leader := run(t, election, "leader", patient, func(cfg *Config) {
		cfg.Listeners = append(cfg.Listeners, Listener{Listener: listen(t)})
		cfg.Services = serving(func(*elector.Leadership) *script {
			return &script{unary: func(ctx context.Context, in *message) (*message, error) {
				if string(in.GetValue()) == "hold" {
					began <- struct{}{}
					<-release
				}
				p, _ := grpcpeer.FromContext(ctx)
				return wrapperspb.Bytes([]byte(p.LocalAddr.String())), nil // where it has received the call
			}}
		})
	})
	_, token, _ := leader.becomes(elector.Leading).Own()
	follower := run(t, election, "follower", grace(time.Millisecond))
	follower.becomes(elector.Following)
	first, second := leader.address, leader.cfg.Listeners[1].Addr().String()
	require.Equal(t, first, follower.says())
	streams := []*leaders{leader.leadersFor(etcdtest.Context(t)), follower.leadersFor(etcdtest.Context(t))}

	underway := asking(func() error {
		out, err := follower.unary(etcdtest.Context(t), "hold")
		if err == nil && out != first {
			err = errors.New("answered at " + out)
		}
		return err
	})
	etcdtest.Take(t, began, "the handler")
	var calls atomic.Int64
	ctx, stop := context.WithCancel(etcdtest.Context(t))
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if _, err := follower.unary(context.WithoutCancel(ctx), ""); err != nil {
					t.Errorf("a call is lost: %v", err)
					return
				}
				calls.Add(1)
			}
		})
	}
	etcdtest.Eventually(t, func() bool { return calls.Load() > 20 }, "calls before")
	require.NoError(t, leader.SetAddress(etcdtest.Context(t), second))
	etcdtest.Eventually(t, func() bool { return follower.says() == second }, "calls go to the new address")
	last := calls.Load()
	etcdtest.Eventually(t, func() bool { return calls.Load() > last+20 }, "calls after")
	stop()
	callers.Wait()
	time.Sleep(20 * time.Millisecond) // longer than the grace
	require.Empty(t, underway)
	close(release)
	require.NoError(t, etcdtest.Take(t, underway, "the answer over the old connection"))
	for _, stream := range streams {
		r := stream.next()
		for r.GetLeaderAddress() != second {
			r = stream.next()
		}
		require.Equal(t, int64(token), r.GetToken())
	}
}
