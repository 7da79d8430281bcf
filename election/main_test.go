package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// patience is how long a test may take: longer than a wait in it.
var patience = 2 * etcdtest.Patience

// stage is etcdtest's, with candidates.
type stage struct{ *etcdtest.Env }

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{etcdtest.NewEnv(t, etcdtest.Shared(t))}
}

// session opens a session that is closed with the test. Its TTL is long enough for
// no renewal to fall into a test that counts requests.
func (s *stage) session(cli *clientv3.Client, change ...func(*lease.Config)) *lease.Session {
	s.T.Helper()
	cfg := lease.Config{Lease: cli, TTL: 10 * time.Minute}
	for _, f := range change {
		f(&cfg)
	}
	session, err := lease.Open(s.Ctx, cfg)
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
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
	s.T.Helper()
	cfg := election.Config{
		Election: s.Election, KV: s.Client, Watcher: s.Client, Value: []byte(value), Timeout: patience / 2, Recheck: -1,
	}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Session == nil {
		cfg.Session = s.session(s.Client)
	}
	c, err := election.New(cfg)
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
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
	s.T.Helper()
	l, err := c.Campaign(s.Ctx)
	require.NoError(s.T, err)
	require.NoError(s.T, l.Err())
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

// get receives, or fails the test.
func get[T any](s *stage, from <-chan T) T {
	s.T.Helper()
	return etcdtest.Take(s.T, from, "what the test waits for")
}

// queued waits until n keys are in the election's range.
func (s *stage) queued(n int) {
	s.T.Helper()
	s.Until("the queue's length", func() bool { return len(s.Queue()) == n })
}

// clean waits until the background has removed all that was left, under a session that
// lives.
func (s *stage) clean(session *lease.Session) {
	s.T.Helper()
	s.Until("what was left is removed", func() bool { return len(s.Queue()) == 0 })
	require.NoError(s.T, session.Err(), "not with its lease")
}

// value returns what a key holds, which is there.
func (s *stage) value(key string) string {
	s.T.Helper()
	value, absent := s.Value(key)
	require.False(s.T, absent)
	return value
}

// over waits until a tenure has ended and returns why.
func (s *stage) over(l *election.Leadership) error {
	s.T.Helper()
	get(s, l.Done())
	require.Error(s.T, l.Err())
	require.Equal(s.T, l.Err(), context.Cause(l.Context()))
	require.False(s.T, l.Holds(0))
	return l.Err()
}
