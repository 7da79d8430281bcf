package elector_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

func takesPart(cfg *elector.Config) { cfg.Transfer = true }

// asks waits until n nodes accept requests, and returns their keys in the order of the queue.
func asks(t testing.TB, clients transfer.Clients, name string, n int) (keys []string) {
	t.Helper()
	require.Eventually(t, func() bool {
		q, err := transfer.Survey(etcdtest.Context(t), clients.KV, name)
		require.NoError(t, err)
		keys = nil
		for _, m := range q.Members {
			if m.TakesPart {
				keys = append(keys, m.Key)
			}
		}
		return len(keys) == n
	}, etcdtest.Patience, 2*time.Millisecond)
	return keys
}

// A tenure that is handed over ends in the usual order: the function's context, the status, the
// function, and then the key. The node campaigns again, at the end of the queue.
func TestHandedOverByTransfer(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	name, clients := etcdtest.Election(t), transfer.Client(cli)
	n1 := &node{id: "n1", won: make(chan *elector.Leadership, 16)}
	ended, release := make(chan elector.Status, 1), make(chan struct{})
	n1.runWith(t, config(name, "n1", cli, takesPart), func(ctx context.Context, l *elector.Leadership) error {
		n1.won <- l
		<-ctx.Done()
		_, _ = n1.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == elector.Unknown })
		select {
		case ended <- n1.Status():
			<-release
		default: // a later tenure
		}
		return nil
	})
	l := etcdtest.Take(t, n1.won, "the first one's win")
	asks(t, clients, name, 1)
	n2 := run(t, config(name, "n2", cli, takesPart))
	asks(t, clients, name, 2)
	n3 := run(t, config(name, "n3", cli, takesPart))
	line := asks(t, clients, name, 3)

	handed := make(chan error, 1)
	go func() {
		_, err := transfer.To(etcdtest.Context(t), clients, name, line[2], transfer.Options{Timeout: etcdtest.Patience, Drain: etcdtest.Patience})
		handed <- err
	}()
	require.ErrorIs(t, etcdtest.Take(t, ended, "the end of the first tenure").Reason(), eldest.ErrDraining)
	require.ErrorIs(t, l.Err(), eldest.ErrDraining)
	require.Empty(t, n3.won, "a successor beside the lead function")
	close(release)
	require.NoError(t, etcdtest.Take(t, handed, "the end of the transfer"))
	next := etcdtest.Take(t, n3.won, "the target's win")
	require.Equal(t, line[2], next.Key())
	require.Greater(t, next.Token(), l.Token())
	n1.follows(t, "n3")
	n2.follows(t, "n3")
	again := asks(t, clients, name, 3)
	require.Equal(t, []string{line[2], line[1]}, again[:2], "order kept, and the old leader at the end")
	require.Empty(t, n2.won)
}

// The node with the highest priority in the queue leads; the values contain the priorities.
func TestPriorityOfNodes(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	name := etcdtest.Election(t)
	priority := func(p int32) func(*elector.Config) { return func(cfg *elector.Config) { cfg.Priority = p } }
	n1 := run(t, config(name, "n1", cli, priority(-1)))
	etcdtest.Take(t, n1.won, "the first one's win, alone")
	n2 := run(t, config(name, "n2", cli, priority(2)))
	n2.follows(t, "n1")
	n3 := run(t, config(name, "n3", cli, priority(3)))
	n3.follows(t, "n1")
	require.NotEmpty(t, n1.end(t))
	etcdtest.Take(t, n3.won, "the best one's win")
	require.Equal(t, int32(3), n2.follows(t, "n3").Priority)
	require.Empty(t, n2.won)
	_ = n3.end(t)
	etcdtest.Take(t, n2.won, "the next best one's win")
}

// A value of another format has no priority, and no node yields to its candidate.
func TestPriorityAndForeignValues(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	name := etcdtest.Election(t)
	n1 := run(t, config(name, "n1", cli, func(cfg *elector.Config) { cfg.Priority = 1 }))
	l := etcdtest.Take(t, n1.won, "the win")
	foreign := electiontest.Join(t, cli, name, func(_ *lease.Config, e *election.Config) { e.Value = []byte("\xff theirs") }).Candidate
	require.NoError(t, etcdtest.Err(foreign.Register(etcdtest.Context(t))))
	n2 := run(t, config(name, "n2", cli, func(cfg *elector.Config) { cfg.Priority = 1 }))
	n2.follows(t, "n1")
	require.NoError(t, foreign.Withdraw(etcdtest.Context(t)))
	require.NoError(t, etcdtest.Err(foreign.Register(etcdtest.Context(t)))) // now behind n2
	require.NoError(t, l.Err())
	_ = n1.end(t)
	etcdtest.Take(t, n2.won, "the win before a foreign one")
}

func TestTransferAndPriorityAreChecked(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	for name, change := range map[string]func(*elector.Config){
		"a bad timeout": func(cfg *elector.Config) { cfg.Serve.Timeout = -1 },
		"both ways to yield": func(cfg *elector.Config) {
			cfg.Priority = 1
			cfg.Candidate.ShouldYield = func(eldest.Candidate, []eldest.Candidate) bool { return false }
		},
	} {
		require.ErrorIs(t, etcdtest.Err(elector.New(config("e", "n1", cli, change))), eldest.ErrInvalid, name)
	}
	value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: "n1", Priority: -2})
	require.NoError(t, err)
	require.Equal(t, "\x0a\x02n1\x28\x03", string(value))
	id, err := identity.Protobuf{}.Decode(value)
	require.NoError(t, err)
	require.Equal(t, int32(-2), id.Priority)
}
