package eldest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

const (
	lanes  = 40 // elections side by side
	rounds = 5  // in each
)

// machine is one of the two hosts of a lane, with a new session for each round.
type machine struct {
	host *etcdtest.Host
	cli  *clientv3.Client
}

// lane is one election of two participants that take turns: the leader is cut off,
// the other one wins, the old one comes back and waits.
type lane struct {
	t     *testing.T
	name  string
	late  time.Duration // by which replies to the leader are delayed
	rand  *rand.Rand
	tally *tally
}

// tally is what the rounds of all lanes add up to.
type tally struct {
	rounds, both, replies atomic.Int64
	// uncut counts the rounds whose tenure was over before the cut: delayed replies cost it
	// the lease, or a busy machine did.
	uncut atomic.Int64
	// starved counts the rounds that were cut both ways and whose end was noted after the
	// win: the timer was due, and its goroutine was not let run. Whoever asked was told.
	starved atomic.Int64
	mu      sync.Mutex
	// closest is the shortest time between the old leader's end and the win, in
	// rounds that were cut both ways. Where only replies are lost the old leader's
	// revocation gets through, and the win follows its end within a millisecond.
	closest time.Duration
}

func (y *tally) add(cut, bothWays bool, margin time.Duration) {
	y.rounds.Add(1)
	switch {
	case !cut:
		y.uncut.Add(1)
		return
	case !bothWays:
		y.replies.Add(1)
		return
	}
	y.both.Add(1)
	if margin < 0 {
		y.starved.Add(1)
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.closest == 0 || margin < y.closest {
		y.closest = margin
	}
}

// stand opens a session of 2 s and queues; the caller leaves. On an error nothing is left.
func (l *lane) stand(ctx context.Context, m machine) (*participant, error) {
	s, err := lease.Open(ctx, lease.Config{Lease: m.cli, TTL: 2 * time.Second,
		// Patient enough to take in the delayed replies: those of a second are older
		// than what the deadline can bear, and must not move it.
		Renewal: func(ttl time.Duration) lease.Renewal {
			return lease.Renewal{Every: ttl / 4, Timeout: l.late + ttl/4}
		},
	})
	if err != nil {
		return nil, err
	}
	c, err := election.New(election.Config{Election: l.name, Session: s, KV: m.cli, Watcher: m.cli})
	if err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	p := &participant{client: m.cli, session: s, candidate: c}
	if _, err := c.Register(ctx); err != nil {
		p.leave()
		return nil, err
	}
	return p, nil
}

// run is all rounds of the lane.
func (l *lane) run(a, b machine) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	for left := rounds; left > 0; {
		err := l.turns(ctx, &a, &b, &left)
		// A machine so busy that the waiter's renewals were late, too, proves nothing.
		if err != nil && !errors.Is(err, eldest.ErrSessionLost) || ctx.Err() != nil || l.t.Failed() {
			assert.NoError(l.t, err)
			return
		}
	}
}

// turns plays rounds, of which so many are left, with a leading first, until one fails.
func (l *lane) turns(ctx context.Context, a, b *machine, left *int) error {
	leader, err := l.stand(ctx, *a)
	if err != nil {
		return err
	}
	defer func() { leader.leave() }()
	tenure, err := leader.candidate.Await(ctx)
	for err == nil && *left > 0 {
		waiter, werr := l.stand(ctx, *b)
		if werr != nil {
			return werr
		}
		var next *election.Leadership
		next, err = l.round(ctx, tenure, a.host, waiter)
		a.host.Mend()
		leader.leave()
		if leader, tenure, *a, *b = waiter, next, *b, *a; err == nil {
			*left--
		}
	}
	return err
}

// round cuts the leader off and returns the waiter's tenure, or why it has none.
func (l *lane) round(ctx context.Context, tenure *election.Leadership, host *etcdtest.Host, waiter *participant) (*election.Leadership, error) {
	end := make(chan time.Time, 1)
	defer context.AfterFunc(tenure.Context(), func() { end <- time.Now() })()
	host.Delay(0, l.late)
	// The cut meets any phase of a renewal: it comes at a random time within two
	// periods and a reply's delay. This is no wait for anything.
	cut := time.NewTimer(time.Duration(l.rand.Int64N(int64(time.Second + l.late))))
	defer cut.Stop()
	select {
	case <-cut.C:
	case <-tenure.Done():
	}
	leads := tenure.Err() == nil
	bothWays := l.rand.IntN(2) == 0
	if bothWays {
		host.Cut()
	} else {
		host.Drop(etcdtest.Outbound) // requests get through, replies do not
	}
	next, err := waiter.candidate.Await(ctx)
	won := time.Now()
	// Asked first of all: not a timestamp that was taken by a busy machine.
	overlap := tenure.Err() == nil
	if err != nil {
		return nil, err
	}
	assert.False(l.t, overlap, "%s: the old leading context lives at the successor's win", l.name)
	assert.Greater(l.t, next.Token(), tenure.Token(), "G2")
	select {
	case ended := <-end:
		l.tally.add(leads, bothWays, won.Sub(ended))
	case <-ctx.Done():
		assert.Fail(l.t, "the old leading context never ended")
	}
	return next, nil
}

// 200 rounds of cutting the leader's client off, with a TTL of 2 s and replies that
// are delayed by nothing, 200 ms or 1 s: the leading context never ends after the
// successor's win. Fails when the deadline is counted from the receipt of a reply, as
// etcd's own client does, or when no margin is left for the clocks.
func TestCutLeader200Times(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	var sum tally
	var running sync.WaitGroup
	for i := range lanes {
		l := &lane{
			t: t, name: electionOf(t), tally: &sum,
			late: []time.Duration{0, 200 * time.Millisecond, time.Second}[i%3],
			rand: rand.New(rand.NewPCG(uint64(i), 2)),
		}
		var pair [2]machine
		for j := range pair {
			pair[j].host = c.Host(t)
			pair[j].cli = pair[j].host.Client(t)
		}
		running.Go(func() { l.run(pair[0], pair[1]) })
	}
	running.Wait()
	require.EqualValues(t, lanes*rounds, sum.rounds.Load())
	require.Positive(t, sum.both.Load())
	require.Positive(t, sum.replies.Load())
	// All of them, if it were not so; some, on a busy machine.
	require.LessOrEqual(t, sum.starved.Load(), sum.both.Load()/2, "the context ends by a timer, and not only when it is asked")
	t.Logf("%d rounds (%d cut both ways, %d of replies only, %d over before); cut both ways, the closest end was %v before the successor's win, and %d were noted late",
		sum.rounds.Load(), sum.both.Load(), sum.replies.Load(), sum.uncut.Load(), sum.closest, sum.starved.Load())
}
