package election_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// watched waits until etcd has put n watches in place for the recorded client, so that what is
// counted afterwards has nothing to do with the beginning.
func (s *stage) watched(n int) {
	s.t.Helper()
	s.until("the watches are in place", func() bool { return len(s.rec.Placed()) >= n })
}

// A cold start is two round trips, a registration one. The watch of the own key
// goes on a stream beside it.
func TestCostOfARegistration(t *testing.T) {
	s := newStage(t)
	s.rec.Reset()
	c := s.candidate("v")
	s.lead(c)
	s.watched(1)
	require.Equal(t, []string{"LeaseGrant", "Txn", "Watch"}, s.rec.Methods(), "grant, register")

	b := s.candidate("b")
	s.rec.Reset()
	_, err := b.Register(s.ctx)
	require.NoError(t, err)
	s.watched(1)
	require.Equal(t, []string{"Txn", "Watch"}, s.rec.Methods())

	d := s.candidate("d")
	s.rec.Reset()
	_, err = d.Try(s.ctx)
	require.Error(t, err)
	require.Equal(t, []string{"Txn"}, s.rec.Methods(), "Try")
}

// A graceful hand-over costs the waiter one read after the event, of single keys,
// and one only if its predecessor was the leader; whoever waits further back is not
// woken at all (G5).
func TestCostOfAHandOver(t *testing.T) {
	s := newStage(t)
	const candidates = 17 // the last one knows its sixteen elders
	leader := s.lead(s.candidate("leader"))
	recorded := make([]*stage, candidates-1)
	waiting := make([]<-chan outcome, candidates-1)
	for i := range waiting {
		r := newStage(t)
		r.election = s.election
		c := r.candidate("v")
		recorded[i], waiting[i] = r, r.campaigning(s.ctx, c)
		s.queued(i + 2)
		r.watched(2) // the own key's, and the predecessor's
		require.Equal(t, []string{"LeaseGrant", "Txn", "Watch", "Watch"}, r.rec.Methods(), "nothing else has changed meanwhile, so nothing is read")
	}
	for i := range waiting {
		for _, r := range recorded[i:] {
			r.rec.Reset()
		}
		require.NoError(t, leader.Resign(s.ctx))
		won := get(s, waiting[i])
		require.NoError(t, won.err)
		calls := etcdtest.Questions(recorded[i].rec.Calls("Range", "Txn"))
		require.Len(t, calls, 1, "waiter %d: one read after the event", i)
		for _, read := range reads(t, calls[0].Request) {
			require.Empty(t, read.RangeEnd, "a point read")
			require.True(t, read.Serializable)
		}
		require.Len(t, recorded[i].rec.Events(), 1, "of its predecessor")
		for j, r := range recorded[i+1:] {
			require.Zero(t, r.rec.Count("Range", "Txn"), "waiter %d sleeps on", i+1+j)
			require.Empty(t, r.rec.Events())
		}
		leader = won.l
	}
}

// reads returns the ranges in a request.
func reads(t *testing.T, request any) []*etcdserverpb.RangeRequest {
	t.Helper()
	if read, ok := request.(*etcdserverpb.RangeRequest); ok {
		return []*etcdserverpb.RangeRequest{read}
	}
	txn, ok := request.(*etcdserverpb.TxnRequest)
	require.True(t, ok, "%T", request)
	require.Empty(t, txn.Compare)
	var ranges []*etcdserverpb.RangeRequest
	for _, op := range txn.Success {
		require.NotNil(t, op.GetRequestRange(), "it only reads")
		ranges = append(ranges, op.GetRequestRange())
	}
	return ranges
}

// The read that proves a win as second in line is of the own key and nothing else.
func TestCostOfAHandOverFromTheLeader(t *testing.T) {
	s := newStage(t)
	leader := s.lead(s.candidate("leader"))
	r := newStage(t)
	r.election = s.election
	c := r.candidate("v")
	waiting := r.campaigning(s.ctx, c)
	s.queued(2)
	r.watched(2)
	r.rec.Reset()
	require.NoError(t, leader.Resign(s.ctx))
	require.NoError(t, get(s, waiting).err)
	calls := etcdtest.Questions(r.rec.Calls("Range", "Txn"))
	require.Len(t, calls, 1)
	read, ok := calls[0].Request.(*etcdserverpb.RangeRequest)
	require.True(t, ok)
	require.Equal(t, c.Key(), string(read.Key))
	require.Empty(t, read.RangeEnd)
}

// What a departure costs the one that leaves: one transaction.
func TestCostOfADeparture(t *testing.T) {
	s := newStage(t)
	c := s.candidate("v")
	l := s.lead(c)
	s.watched(1)
	s.rec.Reset()
	require.NoError(t, l.Resign(s.ctx))
	require.Equal(t, 1, s.rec.Count("Txn"))
	require.Zero(t, s.rec.Count("Range", "LeaseRevoke", "DeleteRange"))
}

// Row 30: a thousand elections on one session. One lease, one stream of watches,
// one transaction each; and nothing is left.
func TestThousandElectionsOnOneSession(t *testing.T) {
	s := newStage(t)
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.Background(), 3*patience) // so many take time
	t.Cleanup(cancel)
	const n = 1000
	var streams atomic.Int64
	s.cli = etcdtest.Shared(t).Client(t, s.rec.Attach, func(cfg *clientv3.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				if strings.HasSuffix(method, "/Watch") {
					streams.Add(1)
				}
				return open(ctx, desc, cc, method, opts...)
			}))
	})
	before := runtime.NumGoroutine()
	session := s.session(s.cli)
	candidates := make([]*election.Candidate, n)
	for i := range candidates {
		candidates[i] = s.candidate("v", on(session), func(cfg *election.Config) {
			cfg.Election = fmt.Sprintf("%s-%d", s.election, i)
		})
	}
	each := func(f func(c *election.Candidate) error) {
		t.Helper()
		const workers = 16
		errs := make(chan error, workers)
		for w := range workers {
			go func() {
				for i := w; i < n; i += workers {
					if err := f(candidates[i]); err != nil {
						errs <- err
						return
					}
				}
				errs <- nil
			}()
		}
		for range workers {
			require.NoError(t, get(s, errs))
		}
	}
	leaders := make(chan *election.Leadership, n)
	each(func(c *election.Candidate) error {
		l, err := c.Campaign(s.ctx)
		leaders <- l
		return err
	})
	s.watched(n)
	require.Equal(t, n, s.rec.Count("Txn"))
	require.Equal(t, n, s.rec.Count("Watch"))
	require.Equal(t, 1, s.rec.Count("LeaseGrant"))
	require.Zero(t, s.rec.Count("Range"))
	require.Equal(t, int64(1), streams.Load())
	require.Less(t, runtime.NumGoroutine()-before, n/10, "goroutines: none for an election that is led")

	// The end of the session ends them all at once.
	require.NoError(t, session.Close(s.ctx))
	for range n {
		require.ErrorIs(t, s.over(get(s, leaders)), eldest.ErrClosed)
	}
	each(func(c *election.Candidate) error { return c.Close(context.WithoutCancel(s.ctx)) })
	require.Equal(t, n, s.rec.Count("Txn"), "their keys went with the lease")
}
