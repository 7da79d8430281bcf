package transfer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
)

// meddling is a KV on which a test takes over the first transaction that is meant.
type meddling struct {
	clientv3.KV
	// meant picks an operation of the transaction.
	meant func(clientv3.Op) bool
	// instead is what happens in place of the commit; its error is the reply.
	instead func(commit func() error) error
	once    sync.Once
}

// inValue picks the operation that writes something with the text in it.
func inValue(text string) func(clientv3.Op) bool {
	return func(op clientv3.Op) bool { return strings.Contains(string(op.ValueBytes()), text) }
}

func (m *meddling) Txn(ctx context.Context) clientv3.Txn {
	// What was sent arrives, whatever has become of its sender.
	return &meddlingTxn{Txn: m.KV.Txn(context.WithoutCancel(ctx)), of: m}
}

type meddlingTxn struct {
	clientv3.Txn
	of    *meddling
	meant bool
}

func (t *meddlingTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { t.Txn = t.Txn.If(cs...); return t }
func (t *meddlingTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *meddlingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		t.meant = t.meant || t.of.meant(op)
	}
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *meddlingTxn) Commit() (*clientv3.TxnResponse, error) {
	var err error
	done := false
	if t.meant {
		t.of.once.Do(func() {
			done = true
			err = t.of.instead(func() error { _, err := t.Txn.Commit(); return err })
		})
	}
	if done && err != nil {
		return nil, err
	}
	if done {
		return nil, context.DeadlineExceeded
	}
	return t.Txn.Commit()
}

// The context of the one who asks ends while the request is under way: it is taken back,
// and if it has not arrived yet it comes to nothing when it does.
func TestRequestIsTakenBackBeforeItsReply(t *testing.T) {
	for _, arrives := range []string{"in time", "late"} {
		t.Run(arrives, func(t *testing.T) {
			s := newStage(t)
			n := s.stand()
			l := n.leads()
			target := s.stand()
			why := errors.New("enough")
			ctx, cancel := context.WithCancelCause(s.ctx)
			defer cancel(nil)
			n.stop() // nobody obeys before it is taken back
			n.served <- get(s, n.served)
			n.silent()
			var late func() error
			kv := &meddling{KV: s.cli, meant: inValue(`"request"`), instead: func(commit func() error) error {
				if late = commit; arrives == "in time" {
					_ = commit()
				}
				cancel(why)
				return context.Canceled
			}}
			_, err := transfer.To(ctx, transfer.Clients{KV: kv, Watcher: s.cli}, s.election, target.Key(), patient)
			require.ErrorIs(t, err, why)
			require.ErrorIs(t, err, eldest.ErrTransferRefused)
			require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
			if arrives == "late" {
				require.NoError(t, late())
			}
			require.NotContains(t, n.mailbox(), "request")
			require.NoError(t, l.Err())
		})
	}
}

// The reply to the taking is lost, and the transfer is off when it is asked for again: it
// is refused, once, and the leader can be asked for the next one.
func TestTakenAndChangedWhileTheReplyIsLost(t *testing.T) {
	for name, change := range map[string]func(s *stage, target *node) error{
		"the target's mailbox": func(s *stage, target *node) error {
			_, err := s.cli.Delete(s.ctx, keys.Mailbox(s.election, int64(target.session.ID())))
			return err
		},
		"the target": func(s *stage, target *node) error { return target.candidate.Withdraw(s.ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			var target *node
			n := s.stand(func(_ *election.Config, c *transfer.Config) {
				c.KV = &meddling{KV: s.cli, meant: inValue(`"taken":true`), instead: func(commit func() error) error {
					return errors.Join(commit(), change(s, target))
				}}
			})
			l := n.leads()
			n.resigns()
			target = s.stand(deaf)
			target.silent()
			_, err := transfer.To(s.ctx, transfer.Client(s.cli), s.election, target.Key(), patient)
			var refusal *transfer.Refusal
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, transfer.Changed, refusal.Reason)
			require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
			require.NoError(t, l.Err())
			require.False(t, s.member(n.Key()).Pending)
			if name == "the target" {
				target = s.stand()
			}
			_, err = transfer.To(s.ctx, transfer.Client(s.cli), s.election, target.Key(), patient)
			require.NoError(t, err)
		})
	}
}

// Serve ends in the middle of a step back: the candidate, for which nobody waits, stands.
func TestServeEndsDuringAStepBack(t *testing.T) {
	s := newStage(t)
	leader := s.stand()
	leader.leads()
	session, err := lease.Open(s.ctx, lease.Config{Lease: s.cli, TTL: patience})
	require.NoError(t, err)
	defer func() { _ = session.Close(s.ctx) }()
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	kv := &meddling{KV: s.cli, meant: clientv3.Op.IsDelete, instead: func(commit func() error) error {
		stop()
		return commit()
	}}
	c, err := election.New(election.Config{Election: s.election, Session: session, KV: kv, Watcher: s.cli})
	require.NoError(t, err)
	defer func() { _ = c.Close(s.ctx) }()
	before, err := c.Register(s.ctx)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- transfer.Serve(ctx, transfer.Config{Candidate: c, Session: session, KV: s.cli, Watcher: s.cli})
	}()
	s.until("the mailbox", func() bool { return s.member(c.Key()).Asks })
	target := s.stand()
	_, err = transfer.To(s.ctx, transfer.Client(s.cli), s.election, target.Key(), patient)
	require.ErrorIs(t, err, eldest.ErrTransferRefused, "the answer went with Serve")
	require.ErrorIs(t, get(s, served), context.Canceled)
	require.Greater(t, c.Status().Token, before.Token)
	require.Equal(t, []string{leader.Key(), target.Key(), c.Key()}, s.queue())
}

// A mailbox that is bound to no lease, because somebody wrote it by hand, is written anew.
func TestMailboxWithoutALease(t *testing.T) {
	s := newStage(t)
	n := s.stand()
	n.leads()
	_, err := s.cli.Put(s.ctx, keys.Mailbox(s.election, int64(n.session.ID())), n.mailbox())
	require.NoError(t, err)
	s.until("bound to the lease again", func() bool { return s.member(n.Key()).Asks })
}
