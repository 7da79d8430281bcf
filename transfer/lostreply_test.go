package transfer_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// meddling is kv with one transaction replaced, the first one with an operation that meant accepts:
// instead is called in place of its commit, and its error, or context.DeadlineExceeded, is the
// reply.
func meddling(kv clientv3.KV, meant func(clientv3.Op) bool, instead func(commit func() error) error) clientv3.KV {
	var taken atomic.Bool
	return etcdtest.WithTxns(kv, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		// A request that was sent arrives even if the context of its sender has ended.
		ctx := context.WithoutCancel(t.Context)
		if !slices.ContainsFunc(t.Then, meant) || taken.Swap(true) {
			return t.Commit(ctx)
		}
		err := instead(func() error { _, err := t.Commit(ctx); return err })
		return nil, cmp.Or(err, context.DeadlineExceeded)
	})
}

// inValue selects the operation that writes a value with the text in it.
func inValue(text string) func(clientv3.Op) bool {
	return func(op clientv3.Op) bool { return strings.Contains(string(op.ValueBytes()), text) }
}

// The context of the requester ends while the request is in flight: the request is withdrawn, and
// has no effect if it arrives later.
func TestRequestIsTakenBackBeforeItsReply(t *testing.T) {
	for _, arrives := range []string{"in time", "late"} {
		t.Run(arrives, func(t *testing.T) {
			s := newStage(t)
			n := s.stand()
			l := n.leads()
			target := s.stand()
			why := errors.New("enough")
			ctx, cancel := context.WithCancelCause(s.Ctx)
			defer cancel(nil)
			n.stop() // Serve must not carry it out before it is withdrawn
			n.served <- get(s, n.served)
			n.silent()
			var late func() error
			kv := meddling(s.Client, inValue(`"request"`), func(commit func() error) error {
				if late = commit; arrives == "in time" {
					_ = commit()
				}
				cancel(why)
				return context.Canceled
			})
			_, err := transfer.To(ctx, transfer.Clients{KV: kv, Watcher: s.Client}, s.Election, target.Key(), patient)
			require.ErrorIs(t, err, why)
			require.ErrorIs(t, err, eldest.ErrTransferRefused)
			require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
			if arrives == "late" {
				require.NoError(t, late())
			}
			require.NotContains(t, n.requestKey(), "request")
			require.NoError(t, l.Err())
		})
	}
}

// The reply to the taking is lost, and the transfer is no longer valid when it is repeated: the
// request is refused, once, and the leader accepts the next one.
func TestTakenAndChangedWhileTheReplyIsLost(t *testing.T) {
	for name, change := range map[string]func(s *stage, target *node) error{
		"the target's request key": func(s *stage, target *node) error {
			_, err := s.Client.Delete(s.Ctx, keys.Request(s.Election, int64(target.session.ID())))
			return err
		},
		"the target": func(s *stage, target *node) error { return target.candidate.Withdraw(s.Ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			var target *node
			n := s.stand(func(_ *election.Config, c *transfer.Config) {
				c.KV = meddling(s.Client, inValue(`"taken":true`), func(commit func() error) error {
					return errors.Join(commit(), change(s, target))
				})
			})
			l := n.leads()
			n.resigns()
			target = s.stand(deaf)
			target.silent()
			_, err := transfer.To(s.Ctx, transfer.Client(s.Client), s.Election, target.Key(), patient)
			var refusal *transfer.Refusal
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, transfer.Changed, refusal.Reason)
			require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
			require.NoError(t, l.Err())
			require.False(t, s.member(n.Key()).Pending)
			if name == "the target" {
				target = s.stand()
			}
			require.NoError(t, etcdtest.Err(transfer.To(s.Ctx, transfer.Client(s.Client), s.Election, target.Key(), patient)))
		})
	}
}

// Serve ends during a requeue: the candidate, whose Campaign or Await was not called, is queued.
func TestServeEndsDuringARequeue(t *testing.T) {
	s := newStage(t)
	leader := s.stand()
	leader.leads()
	session, err := lease.Open(s.Ctx, lease.Config{Lease: s.Client, Options: lease.Options{TTL: etcdtest.Patience}})
	require.NoError(t, err)
	defer func() { _ = session.Close(s.Ctx) }()
	ctx, stop := context.WithCancel(s.Ctx)
	defer stop()
	kv := meddling(s.Client, clientv3.Op.IsDelete, func(commit func() error) error {
		stop()
		return commit()
	})
	c, err := election.New(election.Config{Election: s.Election, Session: session, KV: kv, Watcher: s.Client})
	require.NoError(t, err)
	defer func() { _ = c.Close(s.Ctx) }()
	before, err := c.Register(s.Ctx)
	require.NoError(t, err)
	served := etcdtest.Go(func() error {
		return transfer.Serve(ctx, transfer.Config{Candidate: c, Session: session, KV: s.Client, Watcher: s.Client})
	})
	s.Until("the request key", func() bool { return s.member(c.Key()).TakesPart })
	target := s.stand()
	require.ErrorIs(t, etcdtest.Err(transfer.To(s.Ctx, transfer.Client(s.Client), s.Election, target.Key(), patient)), eldest.ErrTransferRefused, "the answer went with Serve")
	require.ErrorIs(t, get(s, served), context.Canceled)
	require.Greater(t, c.Status().Token, before.Token)
	require.Equal(t, []string{leader.Key(), target.Key(), c.Key()}, s.queue())
}

// A request key without a lease, which another client has written by hand, is written again.
func TestRequestKeyWithoutALease(t *testing.T) {
	s := newStage(t)
	n := s.stand()
	n.leads()
	require.NoError(t, etcdtest.Err(s.Client.Put(s.Ctx, keys.Request(s.Election, int64(n.session.ID())), n.requestKey())))
	s.Until("bound to the lease again", func() bool { return s.member(n.Key()).TakesPart })
}
