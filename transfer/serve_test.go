package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/transfer"
)

var patient = transfer.Options{Timeout: etcdtest.Patience, Drain: etcdtest.Patience}

// requestKey returns the value of a node's request key; empty if there is none.
func (n *node) requestKey() string {
	n.s.T.Helper()
	got, err := n.s.Client.Get(n.s.Ctx, keys.Request(n.s.Election, int64(n.session.ID())))
	require.NoError(n.s.T, err)
	if len(got.Kvs) == 0 {
		return ""
	}
	require.Equal(n.s.T, int64(n.session.ID()), got.Kvs[0].Lease, "bound to the candidate's lease")
	return string(got.Kvs[0].Value)
}

// write writes a value into a node's request key, as another client would.
func (n *node) write(value string) {
	n.s.T.Helper()
	_, err := n.s.Client.Put(n.s.Ctx, keys.Request(n.s.Election, int64(n.session.ID())), value, clientv3.WithIgnoreLease())
	require.NoError(n.s.T, err)
}

// The request key exists during each candidacy and tenure, and at no other time (G8).
func TestRequestKeyComesAndGoesWithTheCandidacy(t *testing.T) {
	s := newStage(t)
	n := s.stand()
	l := n.leads()
	require.NotEmpty(t, n.requestKey())
	require.NoError(t, l.Resign(s.Ctx))
	s.Until("it is gone", func() bool { return n.requestKey() == "" })
	place, err := n.candidate.Register(s.Ctx)
	require.NoError(t, err)
	s.Until("it is there again", func() bool { return s.member(n.Key()).TakesPart })
	n.stop()
	err = get(s, n.served)
	n.served <- err
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, n.requestKey(), "deleted when Serve returns")
	require.Equal(t, place.Token, n.candidate.Status().Token, "the candidacy goes on")
}

func TestServeEndsWithTheCandidateAndTheSession(t *testing.T) {
	s := newStage(t)
	n := s.stand()
	n.leads()
	require.NoError(t, n.candidate.Close(s.Ctx))
	err := get(s, n.served)
	n.served <- err
	require.ErrorIs(t, err, eldest.ErrClosed)
	require.Empty(t, n.requestKey())

	n = s.stand()
	require.NoError(t, n.session.Close(s.Ctx))
	err = get(s, n.served)
	n.served <- err
	require.ErrorIs(t, err, eldest.ErrClosed)
	var op *eldest.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, n.Key(), op.Key)
}

// An unreadable value is reported, and written again, so that other clients can send requests.
func TestForeignMessages(t *testing.T) {
	s := newStage(t)
	ignored := make(chan transfer.IgnoredEvent, 10)
	n := s.stand(func(_ *election.Config, c *transfer.Config) {
		c.Hooks.Ignored = func(e transfer.IgnoredEvent) { ignored <- e }
	})
	n.leads()
	before := n.requestKey()
	for _, message := range []string{"no message", strings.Replace(before, "}", `,"request":{"id":"x","do":"dance"}}`, 1)} {
		n.write(message)
		require.ErrorIs(t, get(s, ignored).Err, eldest.ErrForeignValue)
		s.Until("written anew", func() bool { return n.requestKey() == before })
	}
	require.NoError(t, etcdtest.Err(s.Client.Delete(s.Ctx, keys.Request(s.Election, int64(n.session.ID())))))
	s.Until("deleted by hand, and there again", func() bool { return n.requestKey() == before })
	require.True(t, s.member(n.Key()).TakesPart)
}

func TestDeclined(t *testing.T) {
	s := newStage(t)
	asked := make(chan transfer.Request, 10)
	answered := make(chan transfer.AnsweredEvent, 10)
	no := func(_ *election.Config, c *transfer.Config) {
		c.Accept = func(r transfer.Request) bool { asked <- r; return false }
		c.Hooks.Answered = func(e transfer.AnsweredEvent) { answered <- e }
	}
	n := s.stand(no)
	l := n.leads()
	target := s.stand()
	_, err := transfer.To(s.Ctx, transfer.Client(s.Client), s.Election, target.Key(), patient)
	var refusal *transfer.Refusal
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, transfer.Declined, refusal.Reason)
	r := get(s, asked)
	require.Equal(t, transfer.Drain, r.What)
	require.Equal(t, l.Token(), r.Asked.Token)
	require.Equal(t, target.place.Token, r.Target.Token)
	require.Equal(t, s.Election, r.Election)
	e := get(s, answered)
	require.False(t, e.Done)
	require.Equal(t, transfer.Declined, e.Reason)
	require.NoError(t, l.Err())
	require.False(t, s.member(n.Key()).Pending)
}

// No request is left when the context of the requester has ended, and a candidate that resumes has
// nothing to carry out.
func TestRequestIsTakenBack(t *testing.T) {
	s := newStage(t)
	n := s.stand(deaf)
	l := n.leads()
	n.silent()
	target := s.stand()
	ctx, cancel := context.WithCancelCause(s.Ctx)
	done := make(chan error, 1)
	go func() {
		_, err := transfer.To(ctx, transfer.Client(s.Client), s.Election, target.Key(), patient)
		done <- err
	}()
	s.Until("it is asked", func() bool { return s.member(n.Key()).Pending })
	_, err := transfer.To(s.Ctx, transfer.Client(s.Client), s.Election, target.Key(), patient)
	var refusal *transfer.Refusal
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, transfer.Busy, refusal.Reason)
	why := errors.New("enough")
	cancel(why)
	err = get(s, done)
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, err, eldest.ErrTransferRefused)
	require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
	require.False(t, s.member(n.Key()).Pending)
	require.NoError(t, l.Err())
}

// A request that was taken and not answered: the error says that the outcome is unknown, also if
// the reply to the request was lost and it was taken already.
func TestRequestIsTakenAndNotAnswered(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("reply lost %v", lost), func(t *testing.T) {
			s := newStage(t)
			n := s.stand(deaf)
			l := n.leads()
			n.silent()
			target := s.stand()
			taken := func() { n.write(strings.TrimSuffix(n.requestKey(), "}") + `,"taken":true}`) }
			clients := transfer.Clients{KV: s.Client, Watcher: &watching{Watcher: s.Client, before: taken}}
			if lost {
				clients.Watcher = s.Client
				clients.KV = meddling(s.Client, inValue(`"request"`), func(commit func() error) error {
					err := commit()
					taken()
					return err
				})
			}
			_, err := transfer.To(s.Ctx, clients, s.Election, target.Key(), transfer.Options{Timeout: 2 * time.Second}) // it is taken by then
			require.ErrorIs(t, err, eldest.ErrOutcomeUnknown)
			require.ErrorIs(t, err, eldest.ErrTransferRefused)
			require.Contains(t, n.requestKey(), `"taken":true`, "it is not taken back")
			require.NoError(t, l.Err())
		})
	}
}

// watching is a Watcher that calls before on its first watch: when the request is written, and
// before the requester waits for the answer.
type watching struct {
	clientv3.Watcher
	before func()
	once   sync.Once
}

func (w *watching) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	w.once.Do(w.before)
	return w.Watcher.Watch(ctx, key, opts...)
}

// forbidden refuses transactions on request keys, as a role for the election's range only does.
func forbidden(kv clientv3.KV) clientv3.KV {
	return etcdtest.WithTxns(kv, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		for _, op := range t.Then {
			if strings.HasPrefix(string(op.KeyBytes()), "/eldest/request/") {
				return nil, rpctypes.ErrPermissionDenied
			}
		}
		return t.Commit(t.Context)
	})
}

// Without permission for request keys Serve returns an error; the candidate campaigns as usual.
func TestNoPermissionForRequestKeys(t *testing.T) {
	s := newStage(t)
	n := s.stand(deaf)
	err := transfer.Serve(s.Ctx, transfer.Config{Candidate: n.candidate, Session: n.session, KV: forbidden(s.Client), Watcher: s.Client})
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
	require.NoError(t, n.leads().Err())
}

func TestBadInput(t *testing.T) {
	s := newStage(t)
	n, other := s.stand(deaf), s.stand(deaf)
	good := transfer.Config{Candidate: n.candidate, Session: n.session, KV: s.Client, Watcher: s.Client}
	for name, change := range map[string]func(*transfer.Config){
		"no candidate":       func(c *transfer.Config) { c.Candidate = nil },
		"no session":         func(c *transfer.Config) { c.Session = nil },
		"another session":    func(c *transfer.Config) { c.Session = other.session },
		"no KV":              func(c *transfer.Config) { c.KV = nil },
		"a nil client":       func(c *transfer.Config) { c.KV = (*clientv3.Client)(nil) },
		"no watcher":         func(c *transfer.Config) { c.Watcher = nil },
		"a negative timeout": func(c *transfer.Config) { c.Timeout = -1 },
	} {
		c := good
		change(&c)
		require.ErrorIs(t, transfer.Serve(s.Ctx, c), eldest.ErrInvalid, name)
	}
	require.ErrorIs(t, transfer.Serve(nil, good), eldest.ErrInvalid) //nolint:staticcheck // that is the point
	to := func(ctx context.Context, c transfer.Clients, name string, o transfer.Options) error {
		result, err := transfer.To(ctx, c, name, n.Key(), o)
		require.Equal(t, transfer.Result{}, result)
		return err
	}
	client := transfer.Client(s.Client)
	for _, err := range []error{
		to(nil, client, s.Election, patient), to(s.Ctx, transfer.Client(nil), s.Election, patient),
		to(s.Ctx, transfer.Clients{KV: s.Client}, s.Election, patient), to(s.Ctx, client, "a/b", patient),
		to(s.Ctx, client, s.Election, transfer.Options{Timeout: -1}),
	} {
		require.ErrorIs(t, err, eldest.ErrInvalid)
	}
	for _, name := range []string{"", "a/b"} {
		require.ErrorIs(t, etcdtest.Err(transfer.Survey(s.Ctx, s.Client, name)), eldest.ErrInvalid)
	}
}

// Requests that no plan contains: the leader does not drain for a target that is not the next
// candidate, and a waiter does not requeue for a transfer that is over.
func TestRequestsThatDoNotFit(t *testing.T) {
	s := newStage(t)
	answered := make(chan transfer.AnsweredEvent, 10)
	told := func(_ *election.Config, c *transfer.Config) {
		c.Hooks.Answered = func(e transfer.AnsweredEvent) { answered <- e }
	}
	leader, between, target := s.stand(told), s.stand(told), s.stand()
	l := leader.leads()
	requests := 0
	ask := func(n *node, what string, leads, targets eldest.Token) transfer.AnsweredEvent {
		requests++
		box := func(of *node) int64 {
			got, err := s.Client.Get(s.Ctx, keys.Request(s.Election, int64(of.session.ID())))
			require.NoError(t, err)
			return got.Kvs[0].ModRevision
		}
		n.write(fmt.Sprintf(`{"v":1,"token":%d,"request":{"id":"x%d","do":%q,"leader":{"lease":"%x","token":%d,"box":%d},"target":{"lease":"%x","token":%d,"box":%d}}}`,
			n.place.Token, requests, what, leader.session.ID(), leads, box(leader), target.session.ID(), targets, box(target)))
		e := get(s, answered)
		// The hook is called before the answer is written, which is a change of the request key.
		s.Until("the answer", func() bool { return strings.Contains(n.requestKey(), fmt.Sprintf(`"answer":{"id":"x%d"`, requests)) })
		return e
	}
	for name, e := range map[string]transfer.AnsweredEvent{
		"somebody stands between":      ask(leader, "drain", l.Token(), target.place.Token),
		"another life of the target":   ask(leader, "drain", l.Token(), target.place.Token-1),
		"another tenure of the leader": ask(between, "requeue", l.Token()-1, target.place.Token),
	} {
		require.False(t, e.Done, name)
		require.Equal(t, transfer.Changed, e.Reason, name)
	}
	require.NoError(t, l.Err(), "the leader leads on")
	require.Equal(t, []string{leader.Key(), between.Key(), target.Key()}, s.queue(), "nobody has moved")
	e := ask(between, "requeue", l.Token(), target.place.Token)
	require.True(t, e.Done, "what fits is done")
	require.Greater(t, e.Token, target.place.Token)
}
