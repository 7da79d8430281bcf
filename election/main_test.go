package election_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// patience is how long a test may take: longer than a wait in it.
var patience = 2 * etcdtest.Patience

// stage is what most tests stand on: an election of their own on the shared etcd,
// a client that is recorded, and one that is not.
type stage struct {
	t        *testing.T
	ctx      context.Context
	election string
	rec      *etcdtest.Recorder
	cli      *clientv3.Client // recorded
	admin    *clientv3.Client // not recorded
}

func newStage(t *testing.T) *stage {
	t.Helper()
	ctx := etcdtest.ContextFor(t, patience)
	c := etcdtest.Shared(t)
	rec := &etcdtest.Recorder{}
	return &stage{
		t: t, ctx: ctx, election: strings.ReplaceAll(t.Name(), "/", "|"),
		rec: rec, cli: c.Client(t, rec.Attach), admin: c.Client(t),
	}
}

// session opens a session that is closed with the test. Its TTL is long enough for
// no renewal to fall into a test that counts requests.
func (s *stage) session(cli *clientv3.Client, change ...func(*lease.Config)) *lease.Session {
	s.t.Helper()
	cfg := lease.Config{Lease: cli, TTL: 10 * time.Minute}
	for _, f := range change {
		f(&cfg)
	}
	session, err := lease.Open(s.ctx, cfg)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = session.Close(ctx) // a test may have cut its client
	})
	return session
}

// candidate makes a candidate with a session of its own, both closed with the test. It
// repeats no request whose answer is only slow, and does not look at quiet watches: on a
// busy machine the time for either would come.
func (s *stage) candidate(value string, change ...func(*election.Config)) *election.Candidate {
	s.t.Helper()
	cfg := election.Config{
		Election: s.election, KV: s.cli, Watcher: s.cli, Value: []byte(value), Timeout: patience / 2, Recheck: -1,
	}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Session == nil {
		cfg.Session = s.session(s.cli)
	}
	c, err := election.New(cfg)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// on returns a change of Config that uses the given session.
func on(session *lease.Session) func(*election.Config) {
	return func(cfg *election.Config) { cfg.Session = session }
}

// lead has a candidate win at once.
func (s *stage) lead(c *election.Candidate) *election.Leadership {
	s.t.Helper()
	l, err := c.Campaign(s.ctx)
	require.NoError(s.t, err)
	require.NoError(s.t, l.Err())
	return l
}

// outcome is what a campaign returned.
type outcome struct {
	l   *election.Leadership
	err error
}

// campaigning runs a campaign and delivers its one result.
func (s *stage) campaigning(ctx context.Context, c *election.Candidate) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		l, err := c.Campaign(ctx)
		done <- outcome{l, err}
	}()
	return done
}

// get receives, or fails the test at its deadline.
func get[T any](s *stage, from <-chan T) T {
	s.t.Helper()
	select {
	case v := <-from:
		return v
	case <-s.ctx.Done():
		require.FailNow(s.t, "nothing came before the test's deadline")
		panic("not reached")
	}
}

// until waits for a condition on etcd or elsewhere.
func (s *stage) until(what string, condition func() bool) {
	s.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience * 3 / 4) // while conditions can still be asked
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			require.FailNow(s.t, "not before the test's deadline: "+what)
		}
	}
}

// queued waits until n keys are in the election's range.
func (s *stage) queued(n int) {
	s.t.Helper()
	s.until("the queue's length", func() bool { return len(s.queue()) == n })
}

// clean waits until the background has removed all that was left, under a session that
// lives.
func (s *stage) clean(session *lease.Session) {
	s.t.Helper()
	s.until("what was left is removed", func() bool { return len(s.queue()) == 0 })
	require.NoError(s.t, session.Err(), "not with its lease")
}

// queue returns the keys in the election's range, oldest first.
func (s *stage) queue() []string {
	begin, end := keys.Range(s.election)
	resp, err := s.admin.Get(s.ctx, begin, clientv3.WithRange(end), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	require.NoError(s.t, err)
	queue := []string{}
	for _, kv := range resp.Kvs {
		queue = append(queue, string(kv.Key))
	}
	return queue
}

// value returns what a key holds.
func (s *stage) value(key string) []byte {
	s.t.Helper()
	resp, err := s.admin.Get(s.ctx, key)
	require.NoError(s.t, err)
	require.Len(s.t, resp.Kvs, 1)
	return resp.Kvs[0].Value
}

// remove deletes a key by hand.
func (s *stage) remove(key string) {
	s.t.Helper()
	resp, err := s.admin.Delete(s.ctx, key)
	require.NoError(s.t, err)
	require.Equal(s.t, int64(1), resp.Deleted)
}

// over waits until a tenure has ended and returns why.
func (s *stage) over(l *election.Leadership) error {
	s.t.Helper()
	get(s, l.Done())
	require.Error(s.t, l.Err())
	require.Equal(s.t, l.Err(), context.Cause(l.Context()))
	require.False(s.t, l.Holds(0))
	return l.Err()
}
