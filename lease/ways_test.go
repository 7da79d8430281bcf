package lease_test

import (
	"context"
	"io"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/lease"
)

// onStream has sessions renew on a stream, like that of a *clientv3.Client, and not by the requests
// of clientv3.Lease.
var onStream bool

// TestOnAStream runs the tests of sessions again, except those that count the requests after a failure: a
// failed stream is followed by a request.
func TestOnAStream(t *testing.T) {
	onStream = true
	defer func() { onStream = false }()
	for name, test := range map[string]func(*testing.T){
		"gone":                     TestLeaseGone,
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
		"pulse":                    TestRegression36StuckApplication,
		"pulse recovers":           TestLivenessRecovers,
		"hook that blocks":         TestRegression33HookThatBlocks,
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
