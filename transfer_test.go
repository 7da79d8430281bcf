package eldest_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/requestkey"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/transfer"
	"github.com/eldest-io/eldest/txn"
)

// Acceptance of the transfer of leadership: one test for each guarantee of package transfer and of
// docs/transfer.md, on real etcd.

// asked is a participant that campaigns, leads under Lead, and takes part in transfers.
type asked struct {
	*participant
	token eldest.Token
	// led delivers each tenure.
	led chan *election.Leadership
}

// lineup queues n participants in order; the first one leads. Each one leads with f; if f is nil,
// until its context ends. Each accepts every request.
func lineup(t testing.TB, cli *clientv3.Client, name string, n int, f func(context.Context) error, changes ...change) []*asked {
	t.Helper()
	var line []*asked
	for range n {
		line = append(line, takesPart(t, cli, name, f, nil, changes...))
	}
	etcdtest.Take(t, line[0].led, "the first one's win")
	return line
}

func takesPart(t testing.TB, cli *clientv3.Client, name string, f func(context.Context) error, accept func(transfer.Request) bool, changes ...change) *asked {
	t.Helper()
	if f == nil {
		f = func(ctx context.Context) error { <-ctx.Done(); return nil }
	}
	a := &asked{participant: electiontest.Join(t, cli, name, changes...), led: make(chan *election.Leadership, 100)}
	place, err := a.Candidate.Register(etcdtest.Context(t))
	require.NoError(t, err)
	a.token = place.Token
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		_ = transfer.Serve(ctx, transfer.Config{Candidate: a.Candidate, Session: a.Session, KV: a.Client, Watcher: a.Client, ServeOptions: transfer.ServeOptions{Accept: accept}})
	})
	running.Go(func() {
		l, err := a.Candidate.Await(ctx)
		if err == nil {
			a.led <- l
			_ = l.Lead(ctx, f)
		}
	})
	t.Cleanup(func() { // before the clean-up of Join
		cancel()
		running.Wait()
	})
	etcdtest.Eventually(t, func() bool {
		for _, m := range surveyed(t, cli, name) {
			if m.Key == a.Candidate.Key() {
				return m.TakesPart
			}
		}
		return false
	}, "the request key of %q", a.Candidate.Key())
	return a
}

func surveyed(t testing.TB, cli *clientv3.Client, name string) []transfer.Member {
	t.Helper()
	q, err := transfer.Survey(etcdtest.Context(t), cli, name)
	require.NoError(t, err)
	return q.Members
}

// places returns the keys of a queue with their tokens.
func places(t testing.TB, cli *clientv3.Client, name string) (line []string) {
	t.Helper()
	for _, m := range surveyed(t, cli, name) {
		line = append(line, m.Key+"@"+strconv.FormatInt(int64(m.Token), 10))
	}
	return line
}

// byHand queues a candidate as etcd's own package does, with a key that the test writes.
func byHand(t testing.TB, cli *clientv3.Client, name string) eldest.Candidate {
	t.Helper()
	grant, err := cli.Grant(etcdtest.Context(t), int64(electiontest.Quiet.Seconds())) // never renewed
	require.NoError(t, err)
	key := keys.Candidate(name, int64(grant.ID))
	put, err := cli.Put(etcdtest.Context(t), key, "theirs", clientv3.WithLease(grant.ID))
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = cli.Revoke(context.Background(), grant.ID) })
	return eldest.Candidate{Key: key, Lease: int64(grant.ID), Token: eldest.Token(put.Header.Revision)}
}

// patient has bounds that no busy machine exceeds.
var patient = transfer.Options{Timeout: etcdtest.Patience, Drain: etcdtest.Patience}

func handOver(t testing.TB, cli *clientv3.Client, name string, to *asked, options transfer.Options) transfer.Result {
	t.Helper()
	result, err := transfer.To(etcdtest.Context(t), transfer.Client(cli), name, to.Candidate.Key(), options)
	require.NoError(t, err)
	require.True(t, result.Drained)
	require.Equal(t, to.Candidate.Key(), result.Leader.Key)
	return result
}

// refused hands over in vain, for the given reason.
func refused(t testing.TB, cli *clientv3.Client, name, to string, options transfer.Options, reason transfer.Reason) *transfer.Refusal {
	t.Helper()
	_, err := transfer.To(etcdtest.Context(t), transfer.Client(cli), name, to, options)
	require.ErrorIs(t, err, eldest.ErrTransferRefused)
	var refusal *transfer.Refusal
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, reason, refusal.Reason, "%v", err)
	return refusal
}

// No two lead functions overlap, and no leading context begins before the other one has ended,
// however often leadership is handed over.
func TestTransferOverlapsNobody(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	cli, name := c.Client(t), etcdtest.Election(t)
	var active, most atomic.Int32
	f := func(ctx context.Context) error {
		most.Store(max(most.Load(), active.Add(1)))
		<-ctx.Done()
		_, _ = cli.Get(context.Background(), "something to finish")
		most.Store(max(most.Load(), active.Load()))
		active.Add(-1)
		return nil
	}
	line := lineup(t, cli, name, 3, f)
	for round := range 9 {
		target := line[(round+1)%3]
		old := line[round%3]
		handOver(t, cli, name, target, patient)
		etcdtest.Take(t, target.led, "the target's win")
		require.ErrorIs(t, old.Candidate.Drain(old.token, nil), nil, "it has drained")
		// The old leader is queued again, at the end.
		line[round%3] = takesPart(t, cli, name, f, nil)
	}
	require.Equal(t, int32(1), most.Load())
}

// A guarded write of the drained leader is refused: by its own guard at once, and by etcd when the
// target leads, whatever the old leader still sends (G4).
func TestTransferLetsNoLateWriteThrough(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	drained, release := make(chan struct{}), make(chan struct{})
	var old *election.Leadership
	a := electiontest.Join(t, cli, name)
	old = a.Lead(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	running.Go(func() {
		_ = transfer.Serve(ctx, transfer.Config{Candidate: a.Candidate, Session: a.Session, KV: cli, Watcher: cli})
	})
	running.Go(func() {
		_ = old.Lead(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			close(drained)
			select {
			case <-release:
			case <-t.Context().Done(): // the test has failed
			}
			return nil
		})
	})
	etcdtest.Eventually(t, func() bool { return surveyed(t, cli, name)[0].TakesPart }, "the leader's request key")
	target := takesPart(t, cli, name, nil, nil)
	handed := make(chan error, 1)
	running.Go(func() {
		_, err := transfer.To(etcdtest.Context(t), transfer.Client(cli), name, target.Candidate.Key(), patient)
		handed <- err
	})
	etcdtest.Take(t, drained, "the end of the leading context")
	put := clientv3.OpPut(name+"-data", "late")
	_, err := old.Txn(etcdtest.Context(t)).Then(put).Commit()
	require.ErrorIs(t, err, eldest.ErrNotLeading, "on its own side")
	require.ErrorIs(t, err, eldest.ErrDraining)
	require.False(t, old.Holds(0))
	require.Empty(t, target.led, "the key stands, so nobody leads")
	close(release)
	require.NoError(t, etcdtest.Take(t, handed, "the end of the transfer"))
	etcdtest.Take(t, target.led, "the target's win")
	// A guard without the end of its tenure, as in a process that was stopped.
	require.ErrorIs(t, etcdtest.Err(txn.Guard{Election: name, Key: old.Key(), Token: old.Token()}.Txn(etcdtest.Context(t), cli).Then(put).Commit()), eldest.ErrDeposed, "by etcd")
	got, err := cli.Get(etcdtest.Context(t), name+"-data")
	require.NoError(t, err)
	require.Empty(t, got.Kvs)
}

// Candidates of etcd's package in each position: they never move, and if one is in the way the
// transfer is refused before any candidate has moved.
func TestTransferWithCandidatesOfEtcdsPackage(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	untouched := func(name string, f func()) {
		before := places(t, cli, name)
		f()
		require.Equal(t, before, places(t, cli, name))
	}
	t.Run("leading", func(t *testing.T) {
		name := etcdtest.Election(t)
		byHand(t, cli, name)
		target := takesPart(t, cli, name, nil, nil)
		untouched(name, func() { _ = refused(t, cli, name, target.Candidate.Key(), patient, transfer.LeaderTakesNoPart) })
	})
	t.Run("between", func(t *testing.T) {
		name := etcdtest.Election(t)
		lineup(t, cli, name, 2, nil)
		foreign := byHand(t, cli, name)
		target := takesPart(t, cli, name, nil, nil)
		untouched(name, func() {
			r := refused(t, cli, name, target.Candidate.Key(), patient, transfer.Between)
			require.Equal(t, foreign.Key, r.Who[0].Key)
		})
	})
	t.Run("behind", func(t *testing.T) {
		name := etcdtest.Election(t)
		line := lineup(t, cli, name, 3, nil)
		foreign := byHand(t, cli, name)
		untouched(name, func() {
			_ = refused(t, cli, name, line[2].Candidate.Key(), patient, transfer.Behind)
		})
		options := patient
		options.Order = transfer.PassBy
		result := handOver(t, cli, name, line[2], options)
		require.Equal(t, foreign.Key, result.Plan.Overtaken[0].Key)
		m := surveyed(t, cli, name)
		require.Equal(t, []string{line[2].Candidate.Key(), foreign.Key, line[1].Candidate.Key()}, []string{m[0].Key, m[1].Key, m[2].Key})
		require.Equal(t, foreign.Token, m[1].Token)
	})
	t.Run("the target", func(t *testing.T) {
		name := etcdtest.Election(t)
		lineup(t, cli, name, 1, nil)
		foreign := byHand(t, cli, name)
		result, err := transfer.To(etcdtest.Context(t), transfer.Client(cli), name, foreign.Key, patient)
		require.NoError(t, err)
		require.Equal(t, foreign.Token, result.Leader.Token)
	})
}

// A leader that is stopped does not answer: the request is taken back and nothing has changed.
// (Keys that the test writes represent its process.)
func TestTransferFromALeaderThatIsStopped(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	stopped := byHand(t, cli, name)
	_, err := requestkey.Write(etcdtest.Context(t), cli, txn.Entry{
		Election: name, Lease: stopped.Lease, Value: []byte(`{"v":1,"token":` + strconv.FormatInt(int64(stopped.Token), 10) + `}`),
	}, stopped.Token)
	require.NoError(t, err)
	target := takesPart(t, cli, name, nil, nil)
	before := places(t, cli, name)
	r := refused(t, cli, name, target.Candidate.Key(), transfer.Options{Timeout: time.Second}, transfer.NoAnswer)
	require.False(t, r.Unknown)
	require.Equal(t, before, places(t, cli, name))
	require.False(t, surveyed(t, cli, name)[0].Pending, "the request was taken back")
	require.Empty(t, target.led)
}

// A target that has crashed or leaves before the leader has drained: the leader continues to lead.
func TestTransferToATargetThatLeavesBefore(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	var leaves atomic.Pointer[asked]
	leader := takesPart(t, cli, name, nil, func(transfer.Request) bool {
		_ = leaves.Load().Candidate.Withdraw(etcdtest.Context(t))
		return true
	})
	l := etcdtest.Take(t, leader.led, "the leader's win")
	target := takesPart(t, cli, name, nil, nil)
	leaves.Store(target)
	_ = refused(t, cli, name, target.Candidate.Key(), patient, transfer.Changed)
	require.NoError(t, l.Err())
	require.Len(t, surveyed(t, cli, name), 1)
	_ = refused(t, cli, name, target.Candidate.Key(), patient, transfer.UnknownTarget)
}

// A target that leaves after the leader has drained: the next candidate leads, and the requester
// receives ErrOvertaken.
func TestTransferToATargetThatLeavesAfter(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	var leaves atomic.Pointer[asked]
	line := lineup(t, cli, name, 3, func(ctx context.Context) error {
		<-ctx.Done()
		return leaves.Load().Candidate.Withdraw(etcdtest.Context(t))
	})
	target := line[1]
	leaves.Store(target)
	result, err := transfer.To(etcdtest.Context(t), transfer.Client(cli), name, target.Candidate.Key(), patient)
	require.ErrorIs(t, err, transfer.ErrOvertaken)
	require.True(t, result.Drained)
	require.Equal(t, line[2].Candidate.Key(), result.Leader.Key)
	require.Equal(t, line[2].token, etcdtest.Take(t, line[2].led, "the next one's win").Token())
}

// Two concurrent transfers: whatever their outcomes, each returns the true one, no candidate is
// lost, and a third transfer succeeds.
func TestTwoTransfersAtOnce(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	for range 5 {
		name := etcdtest.Election(t)
		line := lineup(t, cli, name, 4, nil)
		var done sync.WaitGroup
		var successes atomic.Int32
		for _, target := range []*asked{line[1], line[3]} {
			done.Go(func() {
				result, err := transfer.To(etcdtest.Context(t), transfer.Client(cli), name, target.Candidate.Key(), patient)
				if err == nil {
					successes.Add(1)
					assert.Equal(t, target.Candidate.Key(), result.Leader.Key)
					return
				}
				assert.ErrorIs(t, err, eldest.ErrTransferRefused)
				assert.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
			})
		}
		done.Wait()
		want := 4 - int(successes.Load()) // a candidate that has led leaves, in this test
		var stand []transfer.Member
		etcdtest.Eventually(t, func() bool {
			stand = surveyed(t, cli, name)
			return len(stand) == want
		}, "the queue is in order")
		last := stand[want-1]
		for _, a := range line {
			if a.Candidate.Key() == last.Key && want > 1 {
				etcdtest.Eventually(t, func() bool {
					_, err := transfer.To(etcdtest.Context(t), transfer.Client(cli), name, last.Key, patient)
					return err == nil
				}, "a third transfer")
				etcdtest.Take(t, a.led, "the third one's win")
			}
		}
	}
}

// A better candidate that comes later waits until leadership is handed over to it.
func TestNoPreemption(t *testing.T) {
	t.Parallel()
	cli, name := etcdtest.Shared(t).Client(t), etcdtest.Election(t)
	give := election.ByPriority(func(value []byte) int { n, _ := strconv.Atoi(string(value)); return n })
	priority := func(n int) change {
		return func(_ *lease.Config, e *election.Config) { e.Value, e.ShouldYield = []byte(strconv.Itoa(n)), give }
	}
	leader := takesPart(t, cli, name, nil, nil, priority(2))
	l := etcdtest.Take(t, leader.led, "the first one's win, alone")
	other, best := takesPart(t, cli, name, nil, nil, priority(1)), takesPart(t, cli, name, nil, nil, priority(9))
	require.NoError(t, l.Err())
	handOver(t, cli, name, best, patient)
	etcdtest.Take(t, best.led, "the win of the one that came late")
	require.ErrorIs(t, l.Err(), eldest.ErrDraining)
	require.Empty(t, other.led)
}
