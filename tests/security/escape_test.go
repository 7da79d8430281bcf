package security

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/resolver"
)

// names that try to leave the range of their election.
var names = []string{
	"..", ".", "svc", "svc0", "sv", "svc\x00", "svc\xff", "\xff", "\xff\xff\xff", "\x00", "%2F", "svc%2Fa", "svc\\a", "ѕvс", "svc\u2044a", "svc／a",
	"\x1b[2Jsvc", "\u202ecvs", "svc\n", " svc", "svc ", "'; delete --prefix ''", "$(reboot)", strings.Repeat("n", keys.MaxName),
}

// refusedNames are those with which keys would lie in another election's range, or nowhere.
var refusedNames = []string{"", "/", "svc/", "/svc", "svc/a", "a/../svc", "svc/1", "//", strings.Repeat("n", keys.MaxName+1)}

// Whatever the name of an election is, all its operations stay in its range: there is a neighbour
// on each side, and the whole store is compared.
func TestNamesStayInTheirRange(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	all := func() map[string]string {
		t.Helper()
		resp, err := cli.Get(etcdtest.Context(t), "\x00", clientv3.WithFromKey())
		require.NoError(t, err)
		found := map[string]string{}
		for _, kv := range resp.Kvs {
			found[string(kv.Key)] = string(kv.Value)
		}
		return found
	}
	// One key just outside each end of each range, and a candidate of root in each.
	for _, name := range names {
		for _, key := range []string{name, name + "0", name + ".", name + "/\xff\xff", "/" + name} {
			require.NoError(t, etcdtest.Err(cli.Put(etcdtest.Context(t), key, "bystander")))
		}
	}
	before := all()
	for _, name := range names {
		p := electiontest.Join(t, cli, name, func(_ *lease.Config, e *election.Config) { e.Value = []byte(name) })
		l := p.Lead(t)
		during := all()
		own := keys.Candidate(name, int64(p.Session.ID()))
		require.Len(t, during, len(before)+2, "%q", name)
		require.Equal(t, name, during[own])
		require.Equal(t, own, during[keys.Newest(name)])
		for _, other := range names {
			queue, err := observe.Queue(etcdtest.Context(t), cli, nil, other)
			require.NoError(t, err)
			require.Equal(t, other == name, len(queue) == 1, "%q is seen in the election %q", name, other)
		}
		require.NoError(t, l.Proclaim(etcdtest.Context(t), []byte("news")))
		require.NoError(t, p.Candidate.Close(etcdtest.Context(t)))
		require.NoError(t, p.Session.Close(etcdtest.Context(t)))
		require.Equal(t, before, all(), "%q", name)
		require.Equal(t, "eldest:///", resolver.Target(name)[:10])
		require.NotContains(t, resolver.Target(name)[10:], "/")
	}
}

// A name that could leave its range is refused by every function, before any request is sent.
func TestNamesThatCouldEscapeAreRefused(t *testing.T) {
	rec := &etcdtest.Recorder{}
	cli := etcdtest.Shared(t).Client(t, rec.Attach)
	session, err := lease.Open(etcdtest.Context(t), lease.Config{Lease: cli, Options: lease.Options{TTL: time.Hour}}) // no lease is renewed meanwhile
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close(etcdtest.Context(t))) }()
	rec.Reset()
	for _, name := range refusedNames {
		doors := map[string]func() error{
			"check": func() error { return keys.Check(name) },
			"candidate": func() error {
				_, err := election.New(election.Config{Election: name, Session: session, KV: cli, Watcher: cli})
				return err
			},
			"elector": func() error {
				_, err := elector.New(elector.Config{Election: name, NodeID: "n", Source: elector.Always(elector.Client(cli))})
				return err
			},
			"observer": func() error {
				_, err := observe.New(observe.Config{Election: name, KV: cli, Watcher: cli})
				return err
			},
			"leader": func() error { _, err := observe.LeaderOf(etcdtest.Context(t), cli, name); return err },
			"queue":  func() error { _, err := observe.Queue(etcdtest.Context(t), cli, cli, name); return err },
			"evict": func() error {
				return election.Evict(etcdtest.Context(t), cli, name, eldest.Candidate{Key: name + "/1", Token: 1})
			},
		}
		for door, open := range doors {
			require.ErrorIs(t, open(), eldest.ErrInvalid, "%s: %q", door, name)
		}
	}
	// An eviction cannot delete a key of another election either, or a key that is not a
	// candidate's.
	for _, key := range []string{"other/1", "svc", "svc/", "svc0/1", "svc/../other/1", "svc/1/2", "svc/zz", "\x00", ""} {
		err := election.Evict(etcdtest.Context(t), cli, svc, eldest.Candidate{Key: key, Token: 1})
		require.ErrorIs(t, err, eldest.ErrInvalid, "%q", key)
	}
	require.Zero(t, rec.Count(), "something was sent")
	require.ErrorIs(t, etcdtest.Err(observe.LeaderOf(etcdtest.Context(t), cli, svc)), eldest.ErrNoLeader)
	require.Positive(t, rec.Count(), "INVALID: nothing is ever counted")
}

// The keys of a leader-elected store are in no election's range and in no other store's, whatever
// names a caller uses.
func TestSpacesOfServices(t *testing.T) {
	for _, one := range names {
		space := kv.SpaceOf(one)
		for _, key := range append([]string{"../../other/data/x", "/", "\xff\xff", "\x00"}, names...) {
			made := space.Data(key)
			back, ok := space.Key(made)
			require.True(t, ok)
			require.Equal(t, key, back)
			require.NotContains(t, space.Trail(), made)
			for _, other := range names {
				begin, end := keys.Range(other)
				require.False(t, begin <= made && made < end, "%q is in the range of %q", made, other)
				_, foreign := kv.SpaceOf(other).Key(made)
				require.Equal(t, one == other, foreign, "%q is in the space of %q", made, other)
				require.False(t, strings.HasPrefix(made, kv.SpaceOf(other).Trail()), "%q is in the trail of %q", made, other)
			}
		}
	}
}
