package lease_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/lease"
)

// onStream has sessions renew on a stream, like that of a *clientv3.Client, and not by the requests
// of clientv3.Lease.
var onStream bool

// TestOnAStream runs the tests of sessions again, except those in which single requests fail: a
// failed stream is followed by a request, and has no other effect.
func TestOnAStream(t *testing.T) {
	onStream = true
	defer func() { onStream = false }()
	for name, test := range map[string]func(*testing.T){
		"held":                     TestHeldForFiveTTLs,
		"granted TTL":              TestGrantedTTLCounts,
		"changed TTL":              TestChangedTTLChangesTheRhythm,
		"TTL that does not fit":    TestTTLThatDoesNotFit,
		"lower TTL":                TestLowerTTLInALateReply,
		"deadline":                 TestRegression12DeadlineCountsFromSending,
		"black hole":               TestRegression11BlackHole,
		"stale reply":              TestRegression10StaleReply,
		"suspend":                  TestRegression14Suspend,
		"suspend without use":      TestSuspendWithoutUse,
		"short suspend":            TestShortSuspend,
		"slow clock":               TestClockSlowerThanTimers,
		"timer":                    TestLookSetsTheTimerRight,
		"majority":                 TestRenewalsNeedAMajority,
		"resumed with a majority":  TestResumeNeedsAMajority,
		"one of three swallows":    TestOneMemberOfThreeThatSwallows,
		"after the deadline":       TestNothingIsPutAgainAfterTheDeadline,
		"pulse":                    TestRegression36StuckApplication,
		"pulse recovers":           TestLivenessRecovers,
		"hook that blocks":         TestRegression33HookThatBlocks,
		"opened first":             TestOpenedIsToldFirst,
		"close":                    TestCloseRevokes,
		"close during a renewal":   TestCloseDuringARenewal,
		"resume before revocation": TestResumeJustBeforeTheRevocation,
		"shared":                   TestSharedLeaseIsLeftAlone,
		"abandon":                  TestAbandonSendsNothing,
		"concurrent":               TestSessionConcurrentSafe,
		"forfeit":                  TestForfeitIsALoss,
	} {
		t.Run(name, test)
	}
}

// fake is a lease server that also confirms renewals.
type fake interface {
	clientv3.Lease
	lease.Majority
}

// way returns the fake as sessions use it: with streams or without.
func way(f fake) clientv3.Lease {
	if onStream {
		return streamer{f}
	}
	return f
}

// streamer renews on streams, each of which answers one renewal after another.
type streamer struct{ fake }

func (f streamer) KeepAliveStream(ctx context.Context) (etcdserverpb.Lease_LeaseKeepAliveClient, error) {
	s := &keepAlives{ctx: ctx, fake: f.fake, ids: make(chan clientv3.LeaseID, 1000)}
	return s, nil
}

type keepAlives struct {
	grpc.ClientStream
	ctx  context.Context
	fake fake
	ids  chan clientv3.LeaseID
}

func (s *keepAlives) Send(r *etcdserverpb.LeaseKeepAliveRequest) error {
	select {
	case s.ids <- clientv3.LeaseID(r.ID):
		return nil
	case <-s.ctx.Done():
		return io.EOF
	}
}

func (s *keepAlives) Recv() (*etcdserverpb.LeaseKeepAliveResponse, error) {
	var id clientv3.LeaseID
	select {
	case id = <-s.ids:
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
	answer := &etcdserverpb.LeaseKeepAliveResponse{Header: &etcdserverpb.ResponseHeader{RaftTerm: 1}, ID: int64(id)}
	resp, err := s.fake.KeepAliveOnce(s.ctx, id)
	if err == rpctypes.ErrLeaseNotFound { //nolint:errorlint // a fake's own
		return answer, nil
	}
	if err != nil {
		return nil, err
	}
	answer.TTL = resp.TTL
	if resp.ResponseHeader != nil {
		answer.Header = resp.ResponseHeader
	}
	return answer, nil
}

// A lease that does not exist is reported as etcd does on streams.
func TestGoneOnAStream(t *testing.T) {
	onStream = true
	defer func() { onStream = false }()
	for name, script := range map[string][]reply{
		"at once":             {ok(0)},
		"below 0":             {ok(-1)},
		"later":               {ok(10), ok(10), ok(0)},
		"after an end":        {ok(10), fail(errAway), ok(0)},
		"as a single request": {fail(errAway), fail(rpctypes.ErrLeaseNotFound)},
	} {
		t.Run(name, func(t *testing.T) { ended(t, script) })
	}
	require.True(t, onStream)
}

// ended requires that the session ends with the last reply of a script, and sends nothing more.
func ended(t *testing.T, script []reply) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.grant, s.renew = []reply{ok(10)}, script
		session := open(t, s.config(0))
		<-session.Done()
		require.ErrorContains(t, session.Err(), "the server replied that the lease does not exist")
		require.Len(t, s.requests("renew"), len(script))
		require.NoError(t, session.Close(t.Context()))
	})
}
