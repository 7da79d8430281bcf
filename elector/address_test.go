package elector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
	"github.com/eldest-io/eldest/lease"
)

// followsAt waits until the node follows another one at an address.
func (n *node) followsAt(t testing.TB, id, address string) elector.Leader {
	t.Helper()
	s, err := n.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool {
		l, ok := s.Leader()
		return ok && l.NodeID == id && l.Address == address
	})
	require.NoError(t, err, "%s does not follow %s at %s: %v", n.id, id, address, n.Status())
	l, _ := s.Leader()
	return l
}

// SetAddress publishes the address of a leader and of a candidate that waits, in their keys, which
// keep their tokens; later keys have it as well, and so has the key of a node that was not running.
// Watches of the node return its status again. A bad address changes nothing.
func TestSetAddress(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	ctx := etcdtest.Context(t)
	published := func(want ...string) {
		t.Helper()
		var got []string
		for _, e := range queueOf(t, cli, name) {
			id, err := identity.Protobuf{}.Decode(e.Value)
			require.NoError(t, err)
			got = append(got, id.NodeID+" "+id.Address)
		}
		require.Equal(t, want, got)
	}
	idle, err := elector.New(config(name, "idle", cli))
	require.NoError(t, err)
	require.NoError(t, idle.SetAddress(ctx, "idle:2"))
	require.Equal(t, "idle:2", idle.Address())

	n1 := run(t, config(name, "n1", cli))
	won := etcdtest.Take(t, n1.won, "the win")
	n2 := run(t, config(name, "n2", cli))
	n2.followsAt(t, "n1", "n1:1")
	watch := n1.Watch()
	before, err := watch.NextWhere(ctx, func(s elector.Status) bool { return s.Role() == elector.Leading })
	require.NoError(t, err)
	require.NoError(t, n1.SetAddress(ctx, "n1:2"))
	published("n1 n1:2", "n2 n2:1")
	again, err := watch.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, before, again)
	require.Equal(t, won.Token(), n2.followsAt(t, "n1", "n1:2").Token, "another tenure")
	require.NoError(t, won.Err())
	require.NoError(t, n2.SetAddress(ctx, "n2:2"))
	published("n1 n1:2", "n2 n2:2")

	for _, bad := range []string{"\xff", strings.Repeat("x", identity.MaxText+1)} {
		require.ErrorIs(t, n1.SetAddress(ctx, bad), eldest.ErrInvalid)
	}
	require.ErrorIs(t, n1.SetAddress(nil, "n1:3"), eldest.ErrInvalid) //nolint:staticcheck // the refusal is tested
	require.Equal(t, "n1:2", n1.Address())

	_, err = cli.Delete(ctx, won.Key())
	require.NoError(t, err)
	n1.followsAt(t, "n2", "n2:2")
	published("n2 n2:2", "n1 n1:2")
}

// While etcd is not available, SetAddress blocks until its ctx ends; the address that was set last
// is published when etcd is back.
func TestSetAddressWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
	name, cli := etcdtest.Election(t), cluster.Client(t)
	n1 := run(t, config(name, "n1", cli))
	etcdtest.Take(t, n1.won, "the win")
	n2 := run(t, config(name, "n2", cli))
	first := n2.follows(t, "n1")
	require.NoError(t, cluster.Member(0).Stop())
	for _, address := range []string{"n1:2", "n1:3"} {
		require.ErrorIs(t, n1.SetAddress(etcdtest.ContextFor(t, 50*time.Millisecond), address), context.DeadlineExceeded)
	}
	waits := etcdtest.Go(func() error { return n1.SetAddress(context.Background(), "n1:4") })
	require.NoError(t, cluster.Member(0).Cont())
	require.NoError(t, etcdtest.Take(t, waits, "the publication"))
	require.Equal(t, first.Token, n2.followsAt(t, "n1", "n1:4").Token)
}

// The address that AddressOf returns replaces that of the value; it is asked for again, so that a
// change is followed of which etcd receives nothing. After an error the last address stays, while
// the same node leads.
func TestAddressOf(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		n1 := run(t, config("e", "n1", cli, virtual))
		etcdtest.Take(t, n1.won, "the win")
		type answer struct {
			address string
			err     error
		}
		var now atomic.Pointer[answer]
		say := func(address string, err error) { now.Store(&answer{address, err}) }
		say("elsewhere:1", nil)
		n2 := run(t, config("e", "n2", cli, virtual, func(cfg *elector.Config) {
			cfg.AddressOf = func(_ context.Context, l elector.Leader) (string, error) {
				if l.Address != "n1:1" {
					t.Errorf("not the address of the value: %q", l.Address)
				}
				return now.Load().address, now.Load().err
			}
		}))
		n2.followsAt(t, "n1", "elsewhere:1")
		say("elsewhere:2", nil)
		n2.followsAt(t, "n1", "elsewhere:2")
		say("nonsense", errors.New("not now"))
		time.Sleep(time.Minute)
		l, _ := n2.Status().Leader()
		require.Equal(t, "elsewhere:2", l.Address)
		say("elsewhere:3", nil)
		n2.followsAt(t, "n1", "elsewhere:3")
	})
}

// An address that is found again is no news for the standby function. The first error is logged,
// also after empty addresses.
func TestAddressOfBesideStandby(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		n1 := run(t, config("e", "n1", cli, virtual))
		etcdtest.Take(t, n1.won, "the win")
		calls := 0
		var log etcdtest.Paper
		standby, seen, _ := positions()
		run(t, config("e", "n2", cli, virtual, standby, func(cfg *elector.Config) {
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			cfg.AddressOf = func(context.Context, elector.Leader) (string, error) {
				switch calls++; calls {
				case 1:
					return "", nil
				case 2, 3:
					return "", errors.New("not now")
				}
				return "found:1", nil
			}
		}))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Greater(t, calls, 6, "it is called again")
		var told []string
		for len(seen) > 0 {
			if p := <-seen; p.Status.Role() == elector.Following {
				l, _ := p.Status.Leader()
				told = append(told, fmt.Sprintf("%q %d", l.Address, p.Ahead))
			}
		}
		require.Equal(t, []string{`"" 1`, `"found:1" 1`}, told)
		require.Equal(t, 1, strings.Count(log.String(), "the address of the leader was not found"))
	})
}

// A function that blocks delays neither the status, nor another leader's address, nor the win of
// this node. Its context ends with the search, and what it returns then is dropped.
func TestAddressOfMayBlock(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	n1 := run(t, config(name, "n1", cli))
	first := etcdtest.Take(t, n1.won, "the win")
	n2 := run(t, config(name, "n2", cli))
	n2.follows(t, "n1")
	asked, released := make(chan string, 9), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	n3 := run(t, config(name, "n3", cli, func(cfg *elector.Config) {
		cfg.AddressOf = func(ctx context.Context, l elector.Leader) (string, error) {
			asked <- l.NodeID
			if l.NodeID == "n1" {
				<-ctx.Done()
				<-released // late
				return "late:1", nil
			}
			return "found:1", nil
		}
	}))
	n3.followsAt(t, "n1", "")
	require.Equal(t, "n1", etcdtest.Take(t, asked, "the question"))
	_, err := cli.Delete(etcdtest.Context(t), first.Key())
	require.NoError(t, err)
	n3.followsAt(t, "n2", "found:1")
	release()
	second := etcdtest.Take(t, n2.won, "the next win")
	_, err = cli.Delete(etcdtest.Context(t), second.Key())
	require.NoError(t, err)
	n3.becomes(t, elector.Leading)
}

// panicking is a codec that panics on demand.
type panicking struct {
	identity.Protobuf
	now *bool
}

func (c panicking) Encode(id identity.Identity) ([]byte, error) {
	if *c.now {
		panic("a codec")
	}
	return c.Protobuf.Encode(id)
}

// SetAddress does not wait for a round that a panic of the codec has ended.
func TestSetAddressAfterAPanic(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	codec := panicking{now: new(bool)}
	e, err := elector.New(config(name, "n", cli, func(cfg *elector.Config) { cfg.Codec = codec }))
	require.NoError(t, err)
	*codec.now = true
	require.Panics(t, func() {
		_ = e.Run(etcdtest.Context(t), func(context.Context, *elector.Leadership) error { return nil })
	})
	*codec.now = false
	require.NoError(t, e.SetAddress(etcdtest.ContextFor(t, time.Second), "n:2"))
}

// The reply to the publication of an address is lost, and then the former address is set again: the
// key has the new one, so it is published as well.
func TestSetAddressBackAfterALostReply(t *testing.T) {
	t.Parallel()
	name, host := etcdtest.Election(t), etcdtest.Shared(t).Host(t)
	n := run(t, config(name, "n", host.Client(t)))
	etcdtest.Take(t, n.won, "the win")
	swallow := host.SwallowNextReply(etcdtest.Containing("n:2"))
	first, cancel := context.WithCancel(etcdtest.Context(t))
	set := etcdtest.Go(func() error { return n.SetAddress(first, "n:2") })
	require.NoError(t, swallow.Wait(etcdtest.Context(t)))
	cancel()
	require.ErrorIs(t, etcdtest.Take(t, set, "the end of its context"), context.Canceled)
	require.NoError(t, n.SetAddress(etcdtest.Context(t), "n:1"))
	id, err := identity.Protobuf{}.Decode(queueOf(t, etcdtest.Shared(t).Client(t), name)[0].Value)
	require.NoError(t, err)
	require.Equal(t, "n:1", id.Address)
}

// When the key is lost, SetAddress returns at once, also while the lead function ignores its context;
// when the tenure is drained, after Config.Drain, with which the key is left to its lease.
func TestSetAddressWhenTheKeyIsLost(t *testing.T) {
	t.Parallel()
	for cause, lose := range map[error]func(cli *clientv3.Client, s *lease.Session, l *elector.Leadership) error{
		eldest.ErrDeposed: func(cli *clientv3.Client, _ *lease.Session, l *elector.Leadership) error {
			return etcdtest.Err(cli.Delete(context.Background(), l.Key()))
		},
		eldest.ErrSessionLost: func(_ *clientv3.Client, s *lease.Session, _ *elector.Leadership) error { s.Forfeit(nil); return nil },
		eldest.ErrResigned: func(_ *clientv3.Client, s *lease.Session, l *elector.Leadership) error {
			return l.Resign(context.Background())
		},
		eldest.ErrDraining: func(_ *clientv3.Client, _ *lease.Session, l *elector.Leadership) error { l.Drain(nil); return nil },
	} {
		limit := time.Second
		if errors.Is(cause, eldest.ErrDraining) {
			limit = time.Minute
		}
		inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
			session, won, release := make(chan *lease.Session, 100), make(chan *elector.Leadership, 100), make(chan struct{})
			n := &node{id: "n"}
			n.runWith(t, config("lost", "n", cli, virtual, func(cfg *elector.Config) {
				cfg.Session.Hooks.Opened = func(o lease.OpenedEvent) { session <- o.Session }
			}), func(_ context.Context, l *elector.Leadership) error {
				won <- l
				<-release
				return nil
			})
			defer close(release)
			l := etcdtest.Take(t, won, "the win")
			require.NoError(t, lose(cli, etcdtest.Take(t, session, "the session"), l))
			<-l.Done()
			require.ErrorIs(t, l.Err(), cause)
			require.NoError(t, n.SetAddress(etcdtest.ContextFor(t, limit), "n:2"))
		})
	}
}

// An address that was refused is not in the key: when the former one is set again, there is nothing to
// wait for.
func TestSetAddressBackAfterARefusal(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, cli *clientv3.Client, _ *memetcd.Link, _ *memetcd.Etcd) {
		var refuses atomic.Bool
		n := run(t, config("refused", "n", cli, virtual, func(cfg *elector.Config) { cfg.Codec = refusing{now: &refuses} }))
		etcdtest.Take(t, n.won, "the win")
		refuses.Store(true)
		require.ErrorIs(t, n.SetAddress(etcdtest.ContextFor(t, time.Minute), "n:2"), context.DeadlineExceeded)
		require.NoError(t, n.SetAddress(etcdtest.ContextFor(t, time.Minute), "n:1"))
	})
}

// refusing is a codec that refuses on demand, but not in the check of SetAddress.
type refusing struct {
	identity.Protobuf
	now *atomic.Bool
}

func (c refusing) Encode(id identity.Identity) ([]byte, error) {
	if c.now.Load() && id.TTL == time.Minute {
		return nil, errors.New("refused")
	}
	return c.Protobuf.Encode(id)
}
