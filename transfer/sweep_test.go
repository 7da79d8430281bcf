package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/transfer"
)

// fallible is a client of which one transaction fails: for the n-th one after the call of arm,
// instead is called, and if it returns true there is no reply. apply applies the transaction, also
// if its sender's context has ended.
type fallible struct {
	clientv3.KV
	left    atomic.Int64
	instead func(apply func()) (noReply bool)
}

func newFallible(kv clientv3.KV) *fallible {
	f := &fallible{}
	f.KV = etcdtest.WithTxns(kv, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		apply := func() { _, _ = t.Commit(context.WithoutCancel(t.Context)) }
		if f.left.Add(-1) == 0 && f.instead(apply) {
			return nil, context.DeadlineExceeded
		}
		return t.Commit(t.Context)
	})
	return f
}

func (f *fallible) arm(n int, instead func(apply func()) (noReply bool)) {
	f.instead = instead
	f.left.Store(int64(n))
}

// scene is a queue of a leader, a waiter and a target, and a requester that hands over to the
// target. The client of each may fail.
type scene struct {
	*stage
	leader, waiter, target *node
	leads                  *election.Leadership
	clients                map[string]*fallible
}

func newScene(t *testing.T) *scene {
	s := &scene{stage: newStage(t), clients: map[string]*fallible{}}
	s.clients["requester"] = newFallible(s.Client)
	on := func(who string) change {
		s.clients[who] = newFallible(s.Client)
		return func(_ *election.Config, c *transfer.Config) { c.KV = s.clients[who] }
	}
	s.leader, s.waiter, s.target = s.stand(on("leader")), s.stand(on("waiter")), s.stand(on("target"))
	s.leads = s.leader.leads()
	s.leader.resigns()
	return s
}

func (s *scene) to(ctx context.Context, options transfer.Options) (transfer.Result, error) {
	return transfer.To(ctx, transfer.Clients{KV: s.clients["requester"], Watcher: s.Client}, s.Election, s.target.Key(), options)
}

// truthful checks that the outcome is what the result and the error say, and that another transfer is
// possible.
func (s *scene) truthful(result transfer.Result, err error, options transfer.Options) {
	s.T.Helper()
	switch {
	case err == nil:
		require.Equal(s.T, s.target.place.Token, s.target.leads().Token())
	case !result.Drained && !errors.Is(err, eldest.ErrOutcomeUnknown):
		time.Sleep(20 * time.Millisecond) // for what comes late
		require.NoError(s.T, s.leads.Err(), "the leader does not lead: %v", err)
	}
	s.Until("another transfer", func() bool {
		_, err := s.to(s.Ctx, options)
		return err == nil || errors.Is(err, eldest.ErrLeading)
	})
}

// The reply to any one transaction is lost: each step is done once, and there is no error.
func TestEachReplyLost(t *testing.T) {
	for _, who := range []string{"requester", "leader", "waiter"} {
		for n := 1; n <= 3; n++ {
			t.Run(fmt.Sprintf("%s, %d", who, n), func(t *testing.T) {
				s := newScene(t)
				s.clients[who].arm(n, func(apply func()) bool {
					apply()
					return true
				})
				result, err := s.to(s.Ctx, patient)
				require.NoError(t, err)
				require.True(t, result.Drained)
				require.Len(t, result.Moved, 1)
				require.Equal(t, []string{s.target.Key(), s.waiter.Key()}, s.queue())
				s.truthful(result, err, patient)
			})
		}
	}
}

// A request key is deleted by hand before or after any one transaction. In the second case the
// reply is lost too.
func TestRequestKeyDeletedAtEachTransaction(t *testing.T) {
	options := transfer.Options{Timeout: 500 * time.Millisecond, Drain: 200 * time.Millisecond}
	for _, who := range []string{"requester", "leader", "waiter"} {
		for _, whose := range []string{"leader", "waiter", "target"} {
			for n := 1; n <= 3; n++ {
				for _, after := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %d, %s, %v", who, n, whose, after), func(t *testing.T) {
						s := newScene(t)
						of := map[string]*node{"leader": s.leader, "waiter": s.waiter, "target": s.target}[whose]
						key := keys.Request(s.Election, int64(of.session.ID()))
						s.clients[who].arm(n, func(apply func()) bool {
							if after {
								apply()
							}
							_, _ = s.Client.Delete(s.Ctx, key)
							return after
						})
						result, err := s.to(s.Ctx, options)
						s.truthful(result, err, options)
					})
				}
			}
		}
	}
}

// The requester's context ends at any one of its transactions, which is never applied, or before
// the end of To, or after it.
func TestRequesterStopsAtEachTransaction(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, applied := range []string{"never", "before", "after"} {
			t.Run(fmt.Sprintf("%d, %s", n, applied), func(t *testing.T) {
				s := newScene(t)
				why := errors.New("enough")
				ctx, cancel := context.WithCancelCause(s.Ctx)
				defer cancel(nil)
				after := func() {}
				s.clients["requester"].arm(n, func(apply func()) bool {
					switch applied {
					case "before":
						apply()
					case "after":
						after = apply
					}
					cancel(why)
					return true
				})
				result, err := s.to(ctx, patient)
				after()
				if n <= 3 { // the survey, and a request to each of the other two
					require.ErrorIs(t, err, why)
				}
				s.truthful(result, err, patient)
			})
		}
	}
}

// A watch that misses the answer of a candidate that requeues is noticed: To does not wait for the
// whole of Options.Timeout.
//
// Fails if an answer that the watch has not delivered confirms the watch.
func TestAnswerThatTheWatchMissed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	leader := s.stand()
	leader.resigns()
	s.stand(func(_ *election.Config, cfg *transfer.Config) {
		cfg.Accept = func(transfer.Request) bool {
			time.Sleep(time.Second) // until the requester has read the request key
			return true
		}
	})
	target := s.stand()
	clients := transfer.Clients{KV: s.Client, Watcher: etcdtest.Deaf(s.Client, leader.Key())}
	begun := time.Now()
	_, err := transfer.To(s.Ctx, clients, s.Election, target.Key(), transfer.Options{Timeout: 20 * time.Second})
	require.NoError(t, err)
	require.Less(t, time.Since(begun), 15*time.Second)
	target.leads()
}
