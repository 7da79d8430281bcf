package eldest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// contender is a candidate in a mixed election, of Eldest or of etcd's package.
type contender struct {
	key    func() string
	queue  func() <-chan error
	token  func() eldest.Token
	resign func() error
}

func ours(t *testing.T, cli *clientv3.Client, name string) *contender {
	p := electiontest.Join(t, cli, name)
	var won outcome
	return &contender{
		key: p.Candidate.Key,
		queue: func() <-chan error {
			result := p.Queue(t)
			done := make(chan error, 1)
			go func() {
				won = <-result
				done <- won.Reason
			}()
			return done
		},
		token: func() eldest.Token {
			l := won.Leadership // not known before the win
			return l.Token()
		},
		resign: func() error { return won.Resign(etcdtest.Context(t)) },
	}
}

func theirs(t *testing.T, cli *clientv3.Client, name string) *contender {
	s, err := concurrency.NewSession(cli, concurrency.WithTTL(60))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	e := concurrency.NewElection(s, name)
	return &contender{
		// The election itself returns its key only after it has registered.
		key: func() string { return fmt.Sprintf("%s/%x", name, s.Lease()) },
		queue: func() <-chan error {
			done := etcdtest.Go(func() error { return e.Campaign(etcdtest.Context(t), "theirs") })
			return done
		},
		token: func() eldest.Token {
			require.Equal(t, keys.Candidate(name, int64(s.Lease())), e.Key(), "the layouts differ")
			return eldest.Token(e.Rev())
		},
		resign: func() error { return e.Resign(etcdtest.Context(t)) },
	}
}

// An election with candidates of Eldest and of etcd's own concurrency package, in any order of
// arrival: one order, one leader, keys that are equal byte for byte. Fails if a key of Eldest is
// named, ordered or read differently from etcd's package.
func TestMixed(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(*testing.T, *clientv3.Client, string) *contender{"ours": ours, "theirs": theirs}
	for _, order := range [][]string{
		{"ours", "theirs", "ours", "theirs"},
		{"theirs", "ours", "theirs", "ours"},
		{"theirs", "theirs", "ours", "ours", "theirs"},
	} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			c := etcdtest.Shared(t)
			name := etcdtest.Election(t)
			cli := c.Client(t)
			var line []*contender
			var results []<-chan error
			var wanted []string
			for _, kind := range order {
				next := kinds[kind](t, c.Client(t), name)
				results = append(results, next.queue())
				line = append(line, next)
				wanted = append(wanted, next.key())
				etcdtest.Eventually(t, func() bool { return len(electiontest.Keys(t, cli, name)) == len(line) }, "%s is in the queue", kind)
			}
			require.Equal(t, wanted, electiontest.Keys(t, cli, name))
			o := watchElection(t, c.Client(t), name)
			var last eldest.Token
			for i, leader := range line {
				require.NoError(t, etcdtest.Take(t, results[i], "a win"), "%s, number %d", order[i], i)
				for j := i + 1; j < len(line); j++ {
					require.Empty(t, results[j], "number %d won beside number %d", j, i)
				}
				require.Greater(t, leader.token(), last)
				last = leader.token()
				// All readers agree on the leader.
				etcdtest.Eventually(t, func() bool { return o.State().Leader.Key == leader.key() }, "the observer sees number %d", i)
				now, err := observe.LeaderOf(etcdtest.Context(t), cli, name)
				require.NoError(t, err)
				require.Equal(t, leader.key(), now.Key)
				require.Equal(t, last, now.Token)
				eldestKey, err := cli.Get(etcdtest.Context(t), name+"/", clientv3.WithFirstCreate()...)
				require.NoError(t, err)
				require.Equal(t, leader.key(), string(eldestKey.Kvs[0].Key))
				require.NoError(t, leader.resign())
			}
			require.Empty(t, electiontest.Keys(t, cli, name))
		})
	}
}

// Observers of etcd's package read values of Eldest, and observers of Eldest read theirs.
func TestMixedObservers(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	s, err := concurrency.NewSession(c.Client(t), concurrency.WithTTL(60))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	their := concurrency.NewElection(s, name)
	p := electiontest.Join(t, c.Client(t), name)
	tenure := p.Lead(t)
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	defer cancel()
	values := their.Observe(ctx)
	require.NoError(t, tenure.Proclaim(ctx, []byte("ours")))
	for string(etcdtest.Take(t, values, "our value").Kvs[0].Value) != "ours" {
	}
	cli := c.Client(t)
	o := watchElection(t, cli, name)
	campaign := etcdtest.Go(func() error { return their.Campaign(ctx, "theirs") })
	etcdtest.Eventually(t, func() bool { return len(electiontest.Keys(t, cli, name)) == 2 }, "they are in the queue")
	require.NoError(t, tenure.Resign(ctx))
	require.NoError(t, etcdtest.Take(t, campaign, "their win"))
	etcdtest.Eventually(t, func() bool { return string(o.State().Leader.Value) == "theirs" }, "our observer sees their value")
	require.NoError(t, their.Proclaim(ctx, "\x00\xff"))
	etcdtest.Eventually(t, func() bool { return string(o.State().Leader.Value) == "\x00\xff" }, "our observer sees their new value")
	require.NoError(t, their.Resign(ctx))
	etcdtest.Eventually(t, func() bool { return o.State().Kind == eldest.Nobody }, "our observer sees nobody")
}
