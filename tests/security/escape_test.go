package security

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/election"
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
