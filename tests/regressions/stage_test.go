package regressions

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// atOnce is how soon something must happen that takes no waiting for anybody; it
// leaves room for a machine that is busy, and none for a TTL. How soon it does where the
// machine is not, inMilliseconds says.
const atOnce = 6 * time.Second

// inMilliseconds requires that something which takes no waiting is told quickly, once in
// some tries: a machine that is busy is slow now and then, a program that waits for something
// always.
func inMilliseconds(t testing.TB, once func() time.Duration) {
	t.Helper()
	const tries, soon = 20, 100 * time.Millisecond
	var took []time.Duration
	for range tries {
		if took = append(took, once()); took[len(took)-1] < soon {
			return
		}
	}
	require.Fail(t, "told too late, each time", "%v", took)
}

// participant is what a program that takes part has.
type participant struct {
	client    *clientv3.Client
	session   *lease.Session
	candidate *election.Candidate
	// What the hooks told.
	registered chan election.RegisteredEvent
	waiting    chan election.WaitingEvent
	foreign    chan election.ForeignEvent
}

// change alters the configs with which a participant joins.
type change func(*lease.Config, *election.Config)

// quiet is a TTL at which renewals and rechecks hardly get into a test's way.
const quiet = 60 * time.Second

// eager renews so often that even a busy machine does not cost a session its lease, and that
// several TTLs are to be told by the number of renewals.
func eager(granted time.Duration) lease.Renewal {
	return lease.Renewal{Every: granted / eagerness, Timeout: granted / 4}
}

const eagerness = 12

func ttl(d time.Duration) change { return func(l *lease.Config, _ *election.Config) { l.TTL = d } }

// join makes a participant, which is closed with the test.
func join(t testing.TB, cli *clientv3.Client, name string, changes ...change) *participant {
	t.Helper()
	p := &participant{
		client:     cli,
		registered: make(chan election.RegisteredEvent, 1024),
		waiting:    make(chan election.WaitingEvent, 1024),
		foreign:    make(chan election.ForeignEvent, 1024),
	}
	l := lease.Config{Lease: cli, TTL: quiet}
	e := election.Config{Election: name, KV: cli, Watcher: cli}
	e.Hooks.Registered = func(ev election.RegisteredEvent) { p.registered <- ev }
	e.Hooks.Waiting = func(ev election.WaitingEvent) { p.waiting <- ev }
	e.Hooks.Foreign = func(ev election.ForeignEvent) { p.foreign <- ev }
	for _, change := range changes {
		change(&l, &e)
	}
	var err error
	if e.Session == nil {
		e.Session, err = lease.Open(etcdtest.Context(t), l)
		require.NoError(t, err)
	}
	p.session = e.Session
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

func after(f func() (*election.Leadership, error)) <-chan outcome {
	result := make(chan outcome, 1)
	go func() {
		l, err := f()
		result <- outcome{Leadership: l, err: err, at: time.Now()}
	}()
	return result
}

// campaign campaigns in the background.
func (p *participant) campaign(ctx context.Context) <-chan outcome {
	return after(func() (*election.Leadership, error) { return p.candidate.Campaign(ctx) })
}

// queue registers now and waits for the win in the background.
func (p *participant) queue(t testing.TB) <-chan outcome {
	t.Helper()
	ctx := etcdtest.Context(t)
	_, err := p.candidate.Register(ctx)
	require.NoError(t, err, "its registration")
	return after(func() (*election.Leadership, error) { return p.candidate.Await(ctx) })
}

// lead campaigns and must win.
func (p *participant) lead(t testing.TB) *election.Leadership {
	t.Helper()
	l, err := p.candidate.Campaign(etcdtest.Context(t))
	require.NoError(t, err, "a campaign that must be won")
	return l
}

// wins waits for a campaign that must be won.
func wins(t testing.TB, result <-chan outcome) outcome {
	t.Helper()
	o := etcdtest.Take(t, result, "a win")
	require.NoError(t, o.err, "a wait that must be won")
	require.NotNil(t, o.Leadership)
	return o
}

// fails waits for a campaign that must end without a win.
func fails(t testing.TB, result <-chan outcome) outcome {
	t.Helper()
	o := etcdtest.Take(t, result, "the end of a campaign")
	require.Error(t, o.err, "it won, and must not")
	require.Nil(t, o.Leadership, "a Leadership beside an error")
	return o
}

// readers are the clients of reader, by test and cluster.
var readers sync.Map

// reader is a client for what a test asks again and again, made once.
func reader(t testing.TB, c *etcdtest.Cluster) *clientv3.Client {
	t.Helper()
	key := [...]any{t, c}
	cli, ok := readers.Load(key)
	if !ok {
		cli = c.Client(t)
		readers.Store(key, cli)
		t.Cleanup(func() { readers.Delete(key) })
	}
	return cli.(*clientv3.Client)
}

// queueOf reads the queue's keys in their order.
func queueOf(t testing.TB, c *etcdtest.Cluster, name string) []string {
	t.Helper()
	entries, err := observe.Queue(etcdtest.Context(t), reader(t, c), nil, name)
	require.NoError(t, err)
	line := []string{}
	for _, e := range entries {
		line = append(line, e.Key)
	}
	return line
}

// theirs is a candidate of etcd's own package, and its session.
func theirs(t testing.TB, cli *clientv3.Client, name string, seconds int) (*concurrency.Session, *concurrency.Election) {
	t.Helper()
	s, err := concurrency.NewSession(cli, concurrency.WithTTL(seconds))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, concurrency.NewElection(s, name)
}

// theirKey is the key of a candidate of etcd's package, which tells it late.
func theirKey(s *concurrency.Session, name string) string {
	return fmt.Sprintf("%s/%x", name, s.Lease())
}

// onSession has a participant join with a session that exists.
func onSession(s *lease.Session) change {
	return func(_ *lease.Config, e *election.Config) { e.Session = s }
}
