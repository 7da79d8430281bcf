package eldest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// participant is what a program that takes part has: a session and a candidate.
type participant struct {
	client    *clientv3.Client
	session   *lease.Session
	candidate *election.Candidate
	waiting   chan election.WaitingEvent
	won       chan election.WonEvent
}

// change alters the configs with which a participant joins.
type change func(*lease.Config, *election.Config)

// quiet is a TTL at which neither renewals nor rechecks get into a test's counts.
const quiet = 10 * time.Minute

// join makes a participant, which is closed with the test.
func join(t testing.TB, cli *clientv3.Client, name string, changes ...change) *participant {
	t.Helper()
	p := &participant{
		client:  cli,
		waiting: make(chan election.WaitingEvent, 1024),
		won:     make(chan election.WonEvent, 1024),
	}
	l := lease.Config{Lease: cli, TTL: quiet}
	e := election.Config{Election: name, KV: cli, Watcher: cli}
	e.Hooks.Waiting = func(ev election.WaitingEvent) { p.waiting <- ev }
	e.Hooks.Won = func(ev election.WonEvent) { p.won <- ev }
	for _, change := range changes {
		change(&l, &e)
	}
	var err error
	p.session, err = lease.Open(etcdtest.Context(t), l)
	require.NoError(t, err)
	e.Session = p.session
	p.candidate, err = election.New(e)
	require.NoError(t, err)
	t.Cleanup(p.leave)
	return p
}

// leave ends a participant in an orderly way. That it was deposed or cut off before
// is the test's business.
func (p *participant) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
	defer cancel()
	_ = p.candidate.Close(ctx)
	_ = p.session.Close(ctx)
}

// outcome is how a campaign ended, and when it returned.
type outcome struct {
	*election.Leadership
	err error
	at  time.Time
}

// campaign campaigns in the background.
func (p *participant) campaign(ctx context.Context) <-chan outcome {
	return after(func() (*election.Leadership, error) { return p.candidate.Campaign(ctx) })
}

// queue registers now and waits for the win in the background, so that a test
// decides on the order.
func (p *participant) queue(t testing.TB, ctx context.Context) <-chan outcome { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	_, err := p.candidate.Register(ctx)
	require.NoError(t, err)
	return after(func() (*election.Leadership, error) { return p.candidate.Await(ctx) })
}

func after(f func() (*election.Leadership, error)) <-chan outcome {
	result := make(chan outcome, 1)
	go func() {
		l, err := f()
		result <- outcome{Leadership: l, err: err, at: time.Now()}
	}()
	return result
}

// lead campaigns and must win.
func (p *participant) lead(t testing.TB) *election.Leadership {
	t.Helper()
	l, err := p.candidate.Campaign(etcdtest.Context(t))
	require.NoError(t, err)
	return l
}

// wins waits for a campaign that must be won.
func wins(t testing.TB, result <-chan outcome) outcome {
	t.Helper()
	o := etcdtest.Take(t, result, "a win")
	require.NoError(t, o.err)
	require.NotNil(t, o.Leadership)
	return o
}

// fails waits for a campaign that must be lost, for the given reason.
func fails(t testing.TB, result <-chan outcome, reason error) outcome {
	t.Helper()
	o := etcdtest.Take(t, result, "the end of a campaign")
	require.ErrorIs(t, o.err, reason)
	require.Nil(t, o.Leadership, "a Leadership beside an error")
	return o
}

// ended waits until a tenure has ended, for the given reason.
func ended(t testing.TB, l *election.Leadership, reason error) {
	t.Helper()
	etcdtest.Take(t, l.Done(), "the end of a tenure")
	require.ErrorIs(t, l.Err(), reason)
	require.False(t, l.Holds(0))
}

// watchElection observes with the patience of a test on a small cluster.
func watchElection(t testing.TB, cli *clientv3.Client, name string) *observe.Observer {
	t.Helper()
	o, err := observe.New(observe.Config{
		Election: name, KV: cli, Watcher: cli, Timeout: 500 * time.Millisecond, Recheck: 500 * time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	return o
}

// queueOf reads the queue's keys, in their order.
func queueOf(t testing.TB, cli *clientv3.Client, name string) []string {
	t.Helper()
	entries, err := observe.Queue(etcdtest.Context(t), cli, nil, name)
	require.NoError(t, err)
	line := []string{}
	for _, e := range entries {
		line = append(line, e.Key)
	}
	return line
}

// resigned resigns what was won.
func resigned(t testing.TB, l *election.Leadership, err error) error {
	t.Helper()
	if err != nil {
		return err
	}
	return l.Resign(etcdtest.Context(t))
}
