package regressions

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// silent makes a node send nothing while it waits, so that its own requests are not counted.
func silent(cfg *elector.Config) {
	cfg.Session.TTL = 10 * time.Minute
	cfg.Candidate.Timeout = 5 * time.Second // so that it does not repeat requests on a busy machine
	cfg.Candidate.WatchCheck, cfg.Observer.WatchCheck = -1, -1
}

// Row 27. The value of the leader cannot be decoded. Other implementations treat that as a failed
// round: 224 rounds a second, each of which leaks a goroutine. In Eldest the node reports that the
// leader is unknown and why, stays in the queue with its key, in the same round, and leads when the
// foreign candidate leaves. The foreign candidate changes its value all the time, so that a loop
// would have a reason to spin.
//
// Fails when elector.round.seen ends the round at a value that cannot be decoded.
func TestRegression27_ForeignValue(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	foreigner := c.Client(t)
	granted, err := foreigner.Grant(etcdtest.Context(t), 60)
	require.NoError(t, err)
	theirs := keys.Candidate(name, int64(granted.ID))
	put := func(value string) {
		t.Helper()
		require.NoError(t, etcdtest.Err(foreigner.Put(etcdtest.Context(t), theirs, value, clientv3.WithLease(granted.ID))))
	}
	put("\xff\xff")
	var rec etcdtest.Recorder
	n := stand(t, c.Client(t, rec.Attach), name, "n", untilTheEnd, silent)
	foreign := func(s elector.Status) bool { return errors.Is(s.Reason(), eldest.ErrForeignValue) }
	n.until(t, "in doubt about a foreign value", foreign)
	var queue []string
	etcdtest.Eventually(t, func() bool {
		queue = queueOf(t, c, name)
		return len(queue) == 2 && n.rounds.Load() == 1
	}, "it stands in the queue")
	require.Equal(t, theirs, queue[0])
	running, _ := goroutines(t, name)
	require.Positive(t, running, "INVALID: its goroutines cannot be told from others")
	asked := rec.Count()

	const changes = 200
	for i := range changes {
		// Values as etcdctl writes them, as other programs write them, and an empty one.
		put([]string{"candidate", `{"node":"x"}`, "", "\x00", "\x0a\xff\x01", "\x10\x01"}[i%6]) // none contains a node ID
		s := n.Status()
		require.Equal(t, elector.Unknown, s.Role(), "%v", s)
	}
	n.until(t, "in doubt about a foreign value", foreign)
	require.Equal(t, queue, queueOf(t, c, name), "it left its place")
	require.EqualValues(t, 1, n.rounds.Load(), "it went round and round")
	ours, _ := goroutines(t, name)
	// The node may just have begun to campaign at the first count.
	require.Less(t, ours, running+changes/10, "goroutines are leaked")
	require.Less(t, rec.Count()-asked, changes/10, "it asks at each change")

	// A value that can be decoded is followed; one that cannot is not, again.
	value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: "other", Address: "other:1", TTL: time.Minute})
	require.NoError(t, err)
	put(string(value))
	s := n.becomes(t, elector.Following)
	leader, _ := s.Leader()
	require.Equal(t, "other", leader.NodeID)
	require.Equal(t, theirs, leader.Key)
	put("candidate")
	n.until(t, "in doubt about a foreign value", foreign)

	require.NoError(t, etcdtest.Err(foreigner.Revoke(etcdtest.Context(t), granted.ID)))
	l := etcdtest.Take(t, n.won, "the win when the foreigner has gone")
	require.Equal(t, queue[1], l.Key())
	require.EqualValues(t, 1, n.rounds.Load())
}
