package browser_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// leads reports whether etcd itself says that a member is its leader.
func (l *lab) leads(i int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	status, err := l.etcd.Status(ctx, l.info.Endpoints[i])
	return err == nil && status.Leader == status.Header.MemberId
}

// answers reports whether a member answers.
func (l *lab) answers(i int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := l.etcd.Status(ctx, l.info.Endpoints[i])
	return err == nil
}

func testMembersOfEtcd(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	require.Len(t, l.info.Endpoints, 3)
	is := func(i int, states ...string) {
		t.Helper()
		l.eventually("the state of a member", func() bool { return slices.Contains(states, l.member(i)) })
		u.until("the page shows it", `[...document.querySelectorAll(".member")].map((e) => e.dataset.state)[`+js(i)+`] === `+js(l.member(i)))
	}
	do := func(action string, member int) {
		t.Helper()
		since := l.seq()
		u.member(action, member)
		l.acted(since, action)
	}
	leader := slices.IndexFunc([]int{0, 1, 2}, l.leads)
	require.GreaterOrEqual(t, leader, 0, "etcd has no leader")
	is(leader, "leader")

	next := (leader + 1) % 3
	do(feed.MoveLeader, next)
	l.eventually("etcd's leader has moved", func() bool { return l.leads(next) })
	is(next, "leader")

	follower := (next + 1) % 3
	do(feed.MemberStop, follower)
	is(follower, "stopped")
	require.False(t, l.answers(follower))
	do(feed.MemberContinue, follower)
	l.eventually("it answers again", func() bool { return l.answers(follower) })
	is(follower, "follower", "leader")

	do(feed.MemberKill, follower)
	is(follower, "down")
	require.False(t, l.answers(follower))
	do(feed.MemberRestart, follower)
	l.eventually("it answers again", func() bool { return l.answers(follower) })
	is(follower, "follower", "leader")
	l.eventually("the queue is as before", func() bool { return len(l.order()) == 2 })
}

func testCompact(t *testing.T, l *lab) {
	u := begin(l, feed.Eldest, feed.Eldest)
	past := l.placeOf("p1").Create // a revision that can be read before
	read := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), callLimit)
		defer cancel()
		_, err := l.etcd.Get(ctx, "x", clientv3.WithRev(past))
		return err
	}
	require.NoError(t, read())
	// There must be a newer revision: compaction at the newest one leaves it readable.
	since := l.seq()
	u.act(feed.Resign, "p1")
	l.acted(since, feed.Resign)
	since = l.seq()
	u.click(button(feed.Compact))
	l.acted(since, feed.Compact)
	require.ErrorIs(t, read(), rpctypes.ErrCompacted)

	// The candidates go on.
	since = l.seq()
	u.act(feed.Resign, "p2")
	l.acted(since, feed.Resign)
	l.await(since, "p1 leads", func(e feed.Event) bool { return reported(e, "p1", "won") })
	u.showsTheQueueOf(l)
}
