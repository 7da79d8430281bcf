package peertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Suite is what all systems have in common, and where they differ in it. Its tests share one set of servers.
type Suite struct {
	System peer.System
	// Setting is that of the servers and clients. With the defaults the tests run side by side: with the shortest
	// settings healthy leaders may be replaced on a busy machine.
	Setting string
	// Cut is the setting with which clients lose their leadership when their network is cut.
	Cut string
	// Version is a pattern of Servers.Version, and Nodes how many there are.
	Version string
	Nodes   int
	// Written are the entries in the servers' logs that an append makes: at least, or, if Idle is set, exactly,
	// because nothing is written at rest.
	Written int64
	Idle    bool
	// Resigned are those that a resignation makes, if Idle is set.
	Resigned int64
	// Many is how many candidates of one client are queued behind a leader; 0 if a client has one only.
	Many int
	// Survives says that the leader leads on when the servers' own leader is killed.
	Survives bool
	// Rare says that observers read at intervals of seconds: the one of the hand-over starts when a candidate leads.
	Rare bool
}

// Run tests the system, with further tests on the same servers.
func (s Suite) Run(t *testing.T, further map[string]func(t *testing.T, servers *peer.Servers)) {
	servers := Start(t, s.System, s.Setting)
	s.Elections(t, servers, further)
	s.Servers(t, servers)
	s.StoreLeader(t, servers)
}

// Elections tests the system's clients.
func (s Suite) Elections(t *testing.T, servers *peer.Servers, further map[string]func(t *testing.T, servers *peer.Servers)) {
	all := map[string]func(t *testing.T, servers *peer.Servers){"hand-over": s.handOver, "cut": s.cut}
	if s.Many > 0 { // else the candidates are the servers: one that ends is a failure
		all["many"], all["give up"] = s.many, s.giveUp
	}
	maps.Copy(all, further)
	t.Run(s.System.Name, func(t *testing.T) {
		for name, test := range all {
			t.Run(name, func(t *testing.T) {
				if s.Setting == peer.Defaults {
					t.Parallel()
				}
				test(t, servers)
			})
		}
	})
}

// Servers tests the servers, while each of them runs. No other elections may be held meanwhile.
func (s Suite) Servers(t *testing.T, servers *peer.Servers) {
	require.Regexp(t, s.Version, servers.Version)
	require.Equal(t, s.Nodes, servers.Nodes)
	t.Run("writes", func(t *testing.T) { s.writes(t, servers) })
}

// StoreLeader kills the leader of the servers, if they have one. Only further calls of it may use these servers
// meanwhile or afterwards.
func (s Suite) StoreLeader(t *testing.T, servers *peer.Servers) {
	_, lacks := s.System.Lacks["store-leader"]
	require.Equal(t, lacks, servers.KillLeader == nil)
	if !lacks {
		t.Run("the store's leader is killed", func(t *testing.T) { s.killLeader(t, servers) })
	}
}

// Participants opens n clients of a new election.
func (s Suite) Participants(t *testing.T, servers *peer.Servers, n int) []*Participant {
	t.Helper()
	return Participants(t, s.System, servers, s.Setting, n)
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
	etcdtest.Eventually(t, func() bool { return Append(t, tenure, entry) == nil }, "the entry %s is added", entry)
}

// requireLog requires entries in the election's log.
func requireLog(t *testing.T, p *Participant, entries ...string) {
	t.Helper()
	got, err := p.Log(etcdtest.Context(t))
	require.NoError(t, err)
	require.Equal(t, entries, got)
}

// A leader that resigns is followed by the candidate that waits. An observer, if there are any, is notified of both, and
// the store refuses the former leader, if it has a guard.
func (s Suite) handOver(t *testing.T, servers *peer.Servers) {
	ctx, p := etcdtest.Context(t), s.Participants(t, servers, 3)
	var observed <-chan string
	observe := func() {
		if s.System.Lacks["fanout"] == "" {
			observed = p[2].Observe()
		}
	}
	if !s.Rare {
		observe()
	}
	notified := func(id string) {
		t.Helper()
		if observed != nil {
			require.Equal(t, id, etcdtest.Take(t, observed, "an observer is notified"))
		}
	}
	campaign := p[0].Campaign("a")
	first := campaign.Win()
	select {
	case <-campaign.Queued:
		require.Fail(t, "the only candidate was queued")
	default:
	}
	if s.Rare {
		observe()
	}
	notified("a")
	second := p[1].Campaign("b").Wait()
	holds(t, first)
	appends(t, first, "a1")
	appends(t, first, "a2")
	require.NoError(t, first.Resign(ctx))
	require.False(t, first.Holds())

	next := second.Win()
	notified("b")
	holds(t, next)
	refused := Append(t, first, "late")
	want := []string{"a1", "a2", "late", "b1"}
	if s.System.Guard != "" {
		require.ErrorIs(t, refused, peer.ErrRefused)
		want = []string{"a1", "a2", "b1"}
	}
	appends(t, next, "b1")
	requireLog(t, p[1], want...)
	requireLog(t, p[0], want...)
}

// A leader whose network is cut for long notices that, and another one leads. When it is healed, the store refuses the
// old leader, if it has a guard.
func (s Suite) cut(t *testing.T, servers *peer.Servers) {
	p := Participants(t, s.System, servers, s.Cut, 2)
	old := p[0].Campaign("a").Win()
	waiter := p[1].Campaign("b").Wait()
	appends(t, old, "a1")
	p[0].Cut()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Error(t, old.Append(ctx, "cut"))
	next := waiter.Win()
	etcdtest.Eventually(t, func() bool { return !old.Holds() }, "the old leader notices")
	appends(t, next, "b1")
	p[0].Heal()
	if s.System.Guard != "" {
		etcdtest.Eventually(t, func() bool { return errors.Is(Append(t, old, "late"), peer.ErrRefused) }, "a refusal")
		requireLog(t, p[1], "a1", "b1")
	}
	require.False(t, old.Holds())
}

// A candidate that gives up, and whose client is closed, does not lead, and is not in the way of the next one.
func (s Suite) giveUp(t *testing.T, servers *peer.Servers) {
	p := s.Participants(t, servers, 3)
	leader := p[0].Campaign("a").Win()
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	_, err := p[1].Client.Campaign(ctx, "b", cancel)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, p[1].Close())
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	holds(t, p[2].Campaign("c").Win())
}

// Many candidates of one client are queued, and the leader leads on. When it resigns, one of them leads.
func (s Suite) many(t *testing.T, servers *peer.Servers) {
	p := s.Participants(t, servers, 2)
	leader := p[0].Campaign("leader").Win()
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	queued, won, ended := make(chan struct{}, s.Many), make(chan peer.Tenure, s.Many), make(chan struct{}, s.Many)
	for i := range s.Many {
		go func() {
			if tenure, err := p[1].Client.Campaign(ctx, fmt.Sprint("c-", i), func() { queued <- struct{}{} }); err == nil {
				won <- tenure
			}
			ended <- struct{}{}
		}()
	}
	for range s.Many {
		etcdtest.Take(t, queued, "all candidates are queued")
	}
	holds(t, leader)
	for range min(s.Many, 3) {
		require.NoError(t, leader.Resign(ctx))
		leader = etcdtest.Take(t, won, "one of them leads")
	}
	cancel()
	for range s.Many {
		etcdtest.Take(t, ended, "all campaigns end")
	}
}

// What is appended is counted.
func (s Suite) writes(t *testing.T, servers *peer.Servers) {
	p := s.Participants(t, servers, 2)
	leader := p[0].Campaign("a").Win()
	waiter := p[1].Campaign("b").Wait()
	writes := func() int64 {
		n, err := servers.Writes(etcdtest.Context(t))
		require.NoError(t, err)
		return n
	}
	before := writes()
	if s.Idle {
		etcdtest.Never(t, func() bool { return writes() != before }, time.Second, "a write without a change")
	}
	appends(t, leader, "a1")
	var after int64
	etcdtest.Eventually(t, func() bool {
		after = writes()
		return after >= before+s.Written
	}, "what was appended is counted")
	require.True(t, !s.Idle || after == before+s.Written)
	require.NoError(t, leader.Resign(etcdtest.Context(t)))
	waiter.Win()
	require.True(t, !s.Idle || writes() == after+s.Resigned)
}

// When the servers' own leader is killed, another one leads them, and what was appended remains. The election's leader
// may survive that or not, unless the suite says that it does.
func (s Suite) killLeader(t *testing.T, servers *peer.Servers) {
	ctx, p := etcdtest.Context(t), s.Participants(t, servers, 2)
	leader := p[0].Campaign("a").Win()
	appends(t, leader, "before")
	killed, restart, err := servers.KillLeader(ctx)
	require.NoError(t, err)
	etcdtest.Eventually(t, func() bool {
		short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		err := leader.Append(short, "after")
		return err == nil || errors.Is(err, peer.ErrRefused)
	}, "an answer")
	t.Logf("an answer %v after the kill; the leader still leads: %v", time.Since(killed), leader.Holds())
	_, err = servers.Writes(ctx)
	require.NoError(t, err)
	require.NoError(t, restart(ctx))
	log, err := p[1].Log(ctx)
	require.NoError(t, err)
	require.Equal(t, "before", log[0])
	if s.Survives {
		require.True(t, leader.Holds())
		require.Contains(t, log, "after")
		require.NoError(t, leader.Resign(ctx))
	}
}
