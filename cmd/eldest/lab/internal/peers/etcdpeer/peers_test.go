package etcdpeer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/memberproc"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/etcdpeer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peertest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keeper"
)

// TestMain makes this executable a keeper and a member of etcd, as the command is.
func TestMain(m *testing.M) {
	keeper.Serve(connect.Kept)
	if len(os.Args) > 2 && os.Args[1] == "etcd" && os.Args[2] == "member" {
		if err := memberproc.Run(context.Background(), os.Args[3:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	peertest.Main(m, nil)
}

func TestSystems(t *testing.T) {
	for _, s := range []peer.System{etcdpeer.Eldest(), etcdpeer.Concurrency(), etcdpeer.ClientGo()} {
		t.Run(s.Name, func(t *testing.T) {
			servers := peertest.Start(t, s, peer.Shortest)
			require.Regexp(t, `^etcd 3\.\d+\.\d+`, servers.Version())
			require.Equal(t, 3, servers.Nodes())
			for _, setting := range peer.SettingNames {
				t.Run(setting, func(t *testing.T) { handOver(t, s, servers, setting) })
			}
			t.Run("cut", func(t *testing.T) { cut(t, s, servers) })
			t.Run("store leader", func(t *testing.T) { killLeader(t, s, servers) })
		})
	}
}

// holds waits until the tenure holds: on a busy machine heartbeats are late, and then a tenure of Eldest is
// suspended and continues.
func holds(t *testing.T, tenure peer.Tenure) {
	t.Helper()
	etcdtest.Eventually(t, tenure.Holds, "the leader leads")
}

// appends adds an entry, and waits like holds.
func appends(t *testing.T, tenure peer.Tenure, entry string) {
	t.Helper()
	etcdtest.Eventually(t, func() bool { return peertest.Append(t, tenure, entry) == nil }, "the entry %s is added", entry)
}

// handOver has a leader resign. Each leader's entries are in the log in the order of the tenures.
func handOver(t *testing.T, s peer.System, servers peer.Servers, setting string) {
	ctx := etcdtest.Context(t)
	ps := peertest.Participants(t, s, servers, setting, 3)
	first := ps[0].Lead("a")
	holds(t, first)
	before, err := servers.Writes(ctx)
	require.NoError(t, err)
	appends(t, first, "a1")
	after, err := servers.Writes(ctx)
	require.NoError(t, err)
	require.Greater(t, after, before)

	second := ps[1].Campaign("b")
	second.Wait()
	third := ps[1].Campaign("c") // candidates of one client
	third.Wait()
	observing, stop := context.WithCancel(ctx)
	told := make(chan string, 10)
	over := etcdtest.Go(func() error { return ps[2].Observe(observing, func(id string) { told <- id }) })
	require.Equal(t, "a", etcdtest.Take(t, told, "the present leader"))

	require.NoError(t, first.Resign(ctx))
	require.False(t, first.Holds())
	winner := map[string]*peertest.Campaign{"b": second, "c": third}[etcdtest.Take(t, told, "the next leader")]
	require.NotNil(t, winner)
	next := winner.Win()
	holds(t, next)
	refused := peertest.Append(t, first, "a2")
	want := []string{"a1", "a2", "next"}
	if s.Guard != "" {
		require.ErrorIs(t, refused, peer.ErrRefused)
		want = []string{"a1", "next"}
	}
	appends(t, next, "next")
	ps[2].RequireLog(want...)
	stop()
	require.NoError(t, etcdtest.Take(t, over, "the observer's end"))
}

// cut cuts the leader's network for so long that it is replaced.
func cut(t *testing.T, s peer.System, servers peer.Servers) {
	ps := peertest.Participants(t, s, servers, peer.Shortest, 2)
	old := ps[0].Campaign("a").Win()
	waiter := ps[1].Campaign("b")
	waiter.Wait()
	ps[0].Cut()
	next := waiter.Win()
	appends(t, next, "b1")
	etcdtest.Eventually(t, func() bool { return !old.Holds() }, "the old leader notices")
	ps[0].Heal()
	if s.Guard != "" {
		etcdtest.Eventually(t, func() bool { return errors.Is(peertest.Append(t, old, "a1"), peer.ErrRefused) }, "a refusal")
		ps[1].RequireLog("b1")
	}
	holds(t, next)
}

// killLeader kills etcd's own leader. The election's leader may survive that or not.
func killLeader(t *testing.T, s peer.System, servers peer.Servers) {
	ctx := etcdtest.Context(t)
	ps := peertest.Participants(t, s, servers, peer.Shortest, 1)
	tenure := ps[0].Campaign("a").Win()
	_, restart, err := servers.KillLeader(ctx)
	require.NoError(t, err)
	_, err = servers.Writes(ctx)
	require.NoError(t, err)
	etcdtest.Eventually(t, func() bool {
		err := peertest.Append(t, tenure, "a1")
		return err == nil || errors.Is(err, peer.ErrRefused)
	}, "an answer")
	t.Logf("after the death of etcd's leader: holds %v", tenure.Holds())
	require.NoError(t, restart(ctx))
	ps[0].Campaign("b")
	require.NoError(t, tenure.Resign(ctx))
}

// A keeper guards the process with the shortest settings only.
func TestGuards(t *testing.T) {
	s := etcdpeer.Eldest()
	servers := peertest.Start(t, s, peer.Defaults)
	require.Empty(t, peertest.Participants(t, s, servers, peer.Defaults, 1)[0].Guards())
	guards := peertest.Participants(t, s, servers, peer.Shortest, 1)[0].Guards()
	require.Len(t, guards, 1)
	require.DirExists(t, fmt.Sprintf("/proc/%d", guards[0]))
}
