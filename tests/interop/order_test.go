package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// Candidates of all kinds in one queue win in the order of their registration, one at a time. All
// readers agree on each leader and its value, and etcd refuses the writes of a former leader.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, order := range []string{
		"eldest etcdctl v3election concurrency eldest",
		"etcdctl concurrency eldest v3election etcdctl",
		"v3election eldest etcdctl eldest concurrency",
		"concurrency concurrency eldest eldest v3election",
	} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			seen := s.observers(t)
			var line []*contender
			for i, kind := range strings.Fields(order) {
				line = append(line, s.join(t, kind, fmt.Sprintf("%s %d", kind, i)))
			}
			entries := s.queue(t)
			require.Len(t, entries, len(line))
			for i, e := range entries {
				require.Equal(t, line[i].key, e.Key)
			}
			var before *contender
			var last eldest.Token
			for i, c := range line {
				token := s.wins(t, c)
				require.Equal(t, entries[i].Token, token)
				for j := i + 1; j < len(line); j++ {
					require.Empty(t, line[j].won, "number %d leads beside number %d", j, i)
				}
				require.True(t, s.writes(t, c, token))
				if before != nil {
					require.False(t, s.writes(t, before, last), "a former leader wrote")
				}
				seen(t, string(entries[i].Value))
				if c.proclaim != nil {
					value := fmt.Sprintf("proclaimed by %d\x00\xff", i)
					require.NoError(t, c.proclaim(value))
					seen(t, value)
				}
				require.NoError(t, c.resign())
				before, last = c, token
			}
			require.Empty(t, s.queue(t))
			_, err := observe.LeaderOf(etcdtest.Context(t), s.cli, s.name)
			require.ErrorIs(t, err, eldest.ErrNoLeader)
			_, err = s.service.Leader(etcdtest.Context(t), &v3electionpb.LeaderRequest{Name: []byte(s.name)})
			require.ErrorContains(t, err, "no leader")
		})
	}
}

// observers starts an observer of each kind. The returned function waits until each of them has
// reported the leader's value.
func (s *stage) observers(t *testing.T) func(t *testing.T, value string) {
	t.Helper()
	ours, err := observe.New(observe.Config{Election: s.name, KV: s.cli, Watcher: s.cli})
	require.NoError(t, err)
	t.Cleanup(ours.Close)
	stream, err := s.service.Observe(etcdtest.Context(t), &v3electionpb.LeaderRequest{Name: []byte(s.name)})
	require.NoError(t, err)
	tool := elect(t, s.endpoint, "--listen", s.name)
	session, err := concurrency.NewSession(s.cli)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	values := concurrency.NewElection(session, s.name).Observe(etcdtest.Context(t))
	return func(t *testing.T, value string) {
		t.Helper()
		etcdtest.Eventually(t, func() bool { return string(ours.State().Leader.Value) == value }, "our observer reports %q", value)
		for {
			answer, err := stream.Recv()
			require.NoError(t, err)
			if string(answer.Kv.Value) == value {
				break
			}
		}
		for string(etcdtest.Take(t, etcdtest.Go(tool.printed), "an answer of etcdctl elect --listen").GetValue()) != value {
		}
		for string(etcdtest.Take(t, values, "a value of etcd's package").Kvs[0].Value) != value {
		}
	}
}

// Candidates of all kinds campaign, lead and resign again and again. Each leader appends its token
// to a log in etcd, in two steps, as only one leader at a time may: no entry is lost, and the
// tokens increase.
func TestOneLeaderAtATime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	log, total := s.name+"-log", 0
	t.Run("all", func(t *testing.T) {
		for kind, rounds := range map[string]int{"eldest": 5, "concurrency": 5, "etcdctl": 2, "v3election": 5} {
			for i := range 2 {
				total += rounds
				t.Run(fmt.Sprint(kind, i), func(t *testing.T) {
					t.Parallel()
					for round := range rounds {
						c := s.join(t, kind, fmt.Sprint(kind, i, round))
						token := s.wins(t, c)
						s.appendTo(t, log, token)
						require.NoError(t, c.resign())
					}
				})
			}
		}
	})
	entries := strings.Fields(s.read(t, log))
	require.Len(t, entries, total, "two leaders wrote the log at once")
	last := 0
	for _, entry := range entries {
		var token int
		_, err := fmt.Sscan(entry, &token)
		require.NoError(t, err)
		require.Greater(t, token, last)
		last = token
	}
}

func (s *stage) read(t *testing.T, key string) string {
	t.Helper()
	resp, err := s.cli.Get(etcdtest.Context(t), key)
	require.NoError(t, err)
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

func (s *stage) appendTo(t *testing.T, key string, token eldest.Token) {
	t.Helper()
	before := s.read(t, key)
	_, err := s.cli.Put(etcdtest.Context(t), key, fmt.Sprint(before, " ", token))
	require.NoError(t, err)
}
