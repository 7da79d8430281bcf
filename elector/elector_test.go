package elector_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

var errEnough = errors.New("enough")

// A new elector is Unknown and has a reason.
func TestNeitherFromConstruction(t *testing.T) {
	t.Parallel()
	e, err := elector.New(config("e", "n", etcdtest.Shared(t).Client(t)))
	require.NoError(t, err)
	s := e.Status()
	require.Equal(t, elector.Unknown, s.Role())
	require.ErrorIs(t, s.Reason(), eldest.ErrClosed)
	require.Contains(t, s.String(), "unknown: ")
	first, err := e.Watch().Next(etcdtest.Context(t))
	require.NoError(t, err)
	require.Equal(t, s, first)
	require.Equal(t, elector.Unknown, elector.Status{}.Role(), "the zero status claims nothing")
}

// Requirement 36 and G7: each tenure has a lease, a key and a token of its own, lead functions
// never overlap, and a node that does not lead follows the leader.
func TestRequirement36RoundAfterRound(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	one := run(t, config(name, "one", cli))
	first := etcdtest.Take(t, one.won, "the first win")
	require.Equal(t, elector.Leading, one.Status().Role())
	two := run(t, config(name, "two", cli))
	seen := two.follows(t, "one")
	require.Equal(t, first.Key(), seen.Key)
	require.Equal(t, first.Token(), seen.Token)
	require.Equal(t, "one:1", seen.Address)
	require.Equal(t, one.Instance(), seen.Instance)
	require.Equal(t, time.Minute, seen.TTL)
	require.NotEmpty(t, seen.Value())
	require.Contains(t, one.Status().String(), "leading with key")
	require.Contains(t, two.Status().String(), `following node "one" at "one:1" with key`)

	last := first.Token()
	for range 3 {
		leader, follower := one, two
		if two.Status().Role() == elector.Leading {
			leader, follower = two, one
		}
		key, _, ok := leader.Status().Own()
		require.True(t, ok)
		require.NoError(t, etcdtest.Err(cli.Delete(etcdtest.Context(t), key))) // by hand
		l := etcdtest.Take(t, follower.won, "the successor's win")
		require.Greater(t, l.Token(), last)
		last = l.Token()
		require.NotEqual(t, key, leader.follows(t, follower.id).Key)
	}
}

// Requirement 37: the end of Run's context ends everything, in order.
func TestRequirement37RunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	e, err := elector.New(config(name, "n", cli))
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(context.WithValue(etcdtest.Context(t), key{}, "value"))
	var order []string
	var held clientv3.LeaseID
	err = e.Run(ctx, func(during context.Context, l *elector.Leadership) error {
		assert.Equal(t, "value", during.Value(key{}))
		assert.Equal(t, elector.Leading, e.Status().Role())
		cancel(errEnough)
		<-during.Done()
		assert.ErrorIs(t, context.Cause(during), errEnough)
		assert.NoError(t, etcdtest.Err(e.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == elector.Unknown })))
		assert.NoError(t, l.Err(), "the key is kept while the lead function runs")
		if queue := queueOf(t, cli, name); assert.Len(t, queue, 1) {
			held = clientv3.LeaseID(queue[0].Lease)
		}
		order = append(order, "returned")
		return nil
	})
	order = append(order, "ended")
	require.ErrorIs(t, err, errEnough)
	require.Equal(t, []string{"returned", "ended"}, order)
	require.Empty(t, queueOf(t, cli, name))
	left, err := cli.TimeToLive(etcdtest.Context(t), held) // only this one: a grant whose reply was lost leaves another lease
	require.NoError(t, err)
	require.Negative(t, left.TTL, "the lease is left")
	s := e.Status()
	require.Equal(t, elector.Unknown, s.Role())
	require.ErrorIs(t, s.Reason(), eldest.ErrClosed)
	require.ErrorIs(t, s.Reason(), errEnough)
}

type key struct{}

// Only one Run can be active at a time; another one can follow it.
func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	name, cli := etcdtest.Election(t), etcdtest.Shared(t).Client(t)
	n := run(t, config(name, "n", cli))
	etcdtest.Take(t, n.won, "the win")
	err := n.Run(etcdtest.Context(t), func(context.Context, *elector.Leadership) error { t.Error("called"); return nil })
	require.ErrorIs(t, err, eldest.ErrCampaigning)
	require.ErrorIs(t, n.end(t), context.Canceled)

	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	err = n.Run(ctx, func(context.Context, *elector.Leadership) error { cancel(); return nil })
	require.ErrorIs(t, err, context.Canceled)
}

// A value that no key can have is refused before anything is sent.
func TestCodecWithALongValue(t *testing.T) {
	t.Parallel()
	cfg := config("e", "n", etcdtest.Shared(t).Client(t), func(cfg *elector.Config) { cfg.Codec = lengthy{} })
	require.ErrorIs(t, etcdtest.Err(elector.New(cfg)), eldest.ErrInvalid)
	cfg.Election = ""
	require.ErrorIs(t, etcdtest.Err(elector.NewGroup(cfg)), eldest.ErrInvalid)
}

// lengthy is a codec whose values are too long.
type lengthy struct{ identity.Protobuf }

func (lengthy) Encode(identity.Identity) ([]byte, error) {
	return make([]byte, election.MaxValue+1), nil
}
