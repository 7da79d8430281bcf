package eldest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// Acceptance: one test for each guarantee of the package documentation, G1 to G4
// here, G5 to G8 in guarantees_test.go, all on real etcd.

// tenures collects wins in the order in which they happened.
type tenures struct {
	mu   sync.Mutex
	wins []election.WonEvent
}

func (s *tenures) add(w election.WonEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wins = append(s.wins, w)
}

// churn has contenders win and end their tenures in all possible ways, until each has led a number
// of times.
func churn(t *testing.T, c *etcdtest.Cluster, name string, contenders, times int) []election.WonEvent {
	var all tenures
	var running sync.WaitGroup
	admin := c.Client(t)
	for i := range contenders {
		cli := c.Client(t)
		p := electiontest.Join(t, cli, name)
		running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 3*etcdtest.Patience)
			defer cancel()
			for round := range times {
				l, err := p.Candidate.Campaign(ctx)
				if !assert.NoError(t, err) {
					return
				}
				// The hook's event, which carries the revision of the proof.
				var won election.WonEvent
				select {
				case won = <-p.Won:
				case <-ctx.Done():
				}
				assert.Equal(t, l.Token(), won.Token)
				all.add(won)
				if (i+round)%2 == 0 {
					assert.NoError(t, l.Resign(ctx))
					continue
				}
				assert.NoError(t, etcdtest.Err(admin.Delete(ctx, l.Key())))
				select {
				case <-l.Done():
				case <-ctx.Done():
					assert.Fail(t, "the tenure goes on without its key")
				}
			}
		})
	}
	running.Wait()
	require.Len(t, all.wins, contenders*times)
	return all.wins
}

// G1: at any etcd revision at most one candidate leads, and a Leadership exists only after proof,
// at one revision, that its key exists and that no older candidate exists. The proof is checked
// against etcd's own history. Fails if the end of a predecessor counts as a win.
func TestG1LeadershipIsProven(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	before, err := c.Revision(etcdtest.Context(t))
	require.NoError(t, err)
	wins := churn(t, c, name, 6, 5)
	h := historyOf(t, c.Client(t), name, before+1)
	for _, w := range wins {
		line := h.queueAt(w.Revision)
		require.NotEmpty(t, line, "a win at revision %d, when nobody stood", w.Revision)
		require.Equal(t, w.Key, line[0].key, "a win at revision %d by somebody other than the eldest", w.Revision)
		require.Equal(t, w.Token, line[0].token)
	}
}

// G1, the hardest case, and row 3 of the regressions: the waiter's own key is deleted at the revision
// at which its predecessor's key is. Fails if the existence of the waiter's own key is not proven.
func TestG1OwnKeyGoneWithThePredecessors(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	for range 10 {
		leader, waiter := electiontest.Join(t, c.Client(t), name), electiontest.Join(t, c.Client(t), name)
		tenure := leader.Lead(t)
		waits := waiter.Queue(t)
		_, err := c.Client(t).Txn(etcdtest.Context(t)).
			Then(clientv3.OpDelete(tenure.Key()), clientv3.OpDelete(waiter.Candidate.Key())).Commit()
		require.NoError(t, err)
		electiontest.Fails(t, waits, eldest.ErrDeposed)
		ended(t, tenure, eldest.ErrDeposed)
		require.Empty(t, waiter.Won)
	}
}

// G2: tokens strictly increase from tenure to tenure, whichever candidate leads and however the
// tenures end, including tenures of one candidate with one lease. Fails if a candidate enters ahead
// of a live one, or if a tenure takes over the token of an earlier existence of its key.
func TestG2TokensRise(t *testing.T) {
	t.Parallel()
	wins := churn(t, etcdtest.Shared(t), etcdtest.Election(t), 4, 8)
	for i, w := range wins[1:] {
		require.Greater(t, w.Token, wins[i].Token, "tenure %d", i+1)
	}
}

// G3, and rows 11 and 12 of the regressions: in a running process the leading context ends before the
// server can expire the lease, however long replies are delayed, and although the network drops
// packets and resets no connection. Fails if the deadline is counted from the receipt of a reply, has
// no margin, or has no timer.
func TestG3EndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	const ttl = 8 * time.Second
	for _, late := range []time.Duration{0, 300 * time.Millisecond, time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			t.Parallel()
			name := etcdtest.Election(t)
			host := c.Host(t)
			defer host.Mend()
			margin := 400 * time.Millisecond
			if late == 0 { // far enough apart to distinguish the order of the two ends on a busy machine
				margin = ttl / 2
			}
			renewed := make(chan lease.RenewedEvent, 64)
			p := electiontest.Join(t, host.Client(t), name, func(l *lease.Config, _ *election.Config) {
				l.TTL, l.Margin = ttl, margin
				l.Renewal = func(time.Duration) lease.Renewal {
					return lease.Renewal{Every: 500 * time.Millisecond, Timeout: 2 * time.Second}
				}
				if late == 0 {
					l.Backoff = func(int) time.Duration { return time.Hour } // no further attempt reads the clock
				}
				l.Hooks.Renewed = func(ev lease.RenewedEvent) {
					if ev.Latency >= late {
						renewed <- ev
					}
				}
			})
			tenure := p.Lead(t)
			var rec etcdtest.Recorder
			expiry := c.Client(t, rec.Attach).Watch(etcdtest.Context(t), tenure.Key())
			host.Delay(0, late)
			etcdtest.Take(t, renewed, "a renewal with a delayed reply")
			require.True(t, tenure.Holds(time.Second))
			require.False(t, tenure.Holds(ttl), "more than the TTL, from a delayed reply")
			if late == 0 {
				host.Cut() // it does not receive the end of its key either
			} else { // requests are lost from now on; a reply that is on its way arrives
				host.Drop(etcdtest.Inbound)
			}
			end := make(chan time.Time, 1)
			context.AfterFunc(tenure.Context(), func() { end <- time.Now() })
			deadline := lastDeadline(p.Session)
			at := etcdtest.Take(t, end, "the end of the leading context, though nobody asks it")
			ev := etcdtest.Take(t, expiry, "the end of the lease")
			require.Equal(t, clientv3.EventTypeDelete, ev.Events[0].Type)
			// The test checks the deadline itself: on a busy machine the end may come late.
			gone := rec.Events()[0].At
			require.GreaterOrEqual(t, gone.Sub(deadline), margin-50*time.Millisecond, "the margin was not kept")
			if late == 0 {
				require.Less(t, at, gone, "the leading context ended after the lease")
			}
			ended(t, tenure, eldest.ErrSessionLost)
		})
	}
}

// lastDeadline polls a session until nothing can renew it any more, and returns when it ends, or a
// moment before that. It does not poll in the last half second, so that the polling does not end
// the session.
func lastDeadline(s *lease.Session) (last time.Time) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		now := time.Now()
		left := s.Status().Remaining
		if at := now.Add(left); left > 0 && at.After(last) {
			last = at
		}
		if left < 500*time.Millisecond {
			return last
		}
		<-tick.C
	}
}

// G4: a guarded operation commits only during its tenure; if it does not commit, the caller can
// distinguish lost leadership, a false compare of its own, and an unknown outcome. Fails if guard
// and compares are merged, if the guard compares the value or the key's existence, or if a lost
// reply counts as a refusal.
func TestG4GuardedWrites(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	p := electiontest.Join(t, host.Client(t), name)
	tenure := p.Lead(t)
	key := "data/" + name
	admin := c.Client(t)
	read := func() string {
		resp, err := admin.Get(etcdtest.Context(t), key)
		require.NoError(t, err)
		if len(resp.Kvs) == 0 {
			return ""
		}
		return string(resp.Kvs[0].Value)
	}
	put := func(value string) clientv3.Op { return clientv3.OpPut(key, value) }

	// During the tenure.
	resp, err := tenure.Txn(etcdtest.Context(t)).Then(put("1")).Commit()
	require.NoError(t, err)
	require.True(t, resp.Succeeded)
	// The caller's own compare is false, so its Else branch is applied.
	resp, err = tenure.Txn(etcdtest.Context(t)).
		If(clientv3.Compare(clientv3.Value(key), "=", "7")).Then(put("2")).Else(put("else")).Commit()
	require.NoError(t, err)
	require.False(t, resp.Succeeded)
	require.Equal(t, "else", read())
	// The reply is lost.
	lost := host.SwallowNextReply(etcdtest.Containing("unknown"))
	_, err = tenure.Txn(etcdtest.Context(t)).Then(put("unknown")).Commit()
	require.ErrorIs(t, err, eldest.ErrOutcomeUnknown)
	require.NotErrorIs(t, err, eldest.ErrDeposed)
	require.NoError(t, lost.Wait(etcdtest.Context(t)))
	require.Equal(t, "unknown", read())
	// The range of its own election is not for data.
	require.ErrorIs(t, etcdtest.Err(tenure.KV().Put(etcdtest.Context(t), keys.Prefix(name)+"data", "")), eldest.ErrInvalid)

	// After the tenure. The guard works alone, without the state of this client, as in a process
	// that was stopped while it sent the request.
	guard := tenure.Guard()
	guard.Alive = nil
	require.NoError(t, tenure.Resign(etcdtest.Context(t)))
	again := p.Lead(t) // the same key, the same lease, the same value
	require.Equal(t, tenure.Key(), again.Key())
	_, err = guard.Txn(etcdtest.Context(t), p.Client).Then(put("late")).Else(put("late")).Commit()
	require.ErrorIs(t, err, eldest.ErrDeposed)
	require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
	require.ErrorIs(t, etcdtest.Err(guard.KV(p.Client).Put(etcdtest.Context(t), key, "late")), eldest.ErrDeposed)
	require.Equal(t, "unknown", read(), "a write of a former tenure was applied")
	require.ErrorIs(t, etcdtest.Err(tenure.Txn(etcdtest.Context(t)).Then(put("late")).Commit()), eldest.ErrNotLeading)
}

// history is the history of one election's range, change by change.
type history struct{ events []*clientv3.Event }

type place struct {
	key   string
	token eldest.Token
}

// historyOf reads all changes from a revision until now.
func historyOf(t *testing.T, cli *clientv3.Client, name string, from int64) *history {
	begin, end := keys.Range(name)
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	defer cancel()
	now, err := cli.Get(ctx, begin, clientv3.WithRange(end))
	require.NoError(t, err)
	until := now.Header.Revision
	// No relevant change follows this marker.
	marker := begin + "0"
	require.NoError(t, etcdtest.Err(cli.Put(ctx, marker, "")))
	h := &history{}
	for resp := range cli.Watch(ctx, begin, clientv3.WithRange(end), clientv3.WithRev(from)) {
		require.NoError(t, resp.Err())
		for _, ev := range resp.Events {
			if ev.Kv.ModRevision > until {
				require.NoError(t, etcdtest.Err(cli.Delete(ctx, marker)))
				return h
			}
			h.events = append(h.events, ev)
		}
	}
	require.FailNow(t, "the history ended early")
	return nil
}

// queueAt is the queue as it was at a revision, the eldest first.
func (h *history) queueAt(revision int64) []place {
	var line []place
	for _, ev := range h.events {
		switch key := string(ev.Kv.Key); {
		case ev.Kv.ModRevision > revision:
			return line
		case ev.Type == clientv3.EventTypeDelete:
			for i, p := range line {
				if p.key == key {
					line = append(line[:i:i], line[i+1:]...)
					break
				}
			}
		case ev.IsCreate():
			line = append(line, place{key, eldest.Token(ev.Kv.CreateRevision)})
		}
	}
	return line
}

// String is for test messages.
func (p place) String() string {
	return fmt.Sprintf("%s@%d", p.key[strings.LastIndex(p.key, "/")+1:], p.token)
}
