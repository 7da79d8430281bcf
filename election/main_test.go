package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// patience is the time limit of a test: longer than a single wait in it.
var patience = 2 * etcdtest.Patience

// env is a test environment with candidates.
type env struct{ *etcdtest.Env }

// newEnv makes an env on the shared cluster, for a test that then runs in parallel with others.
func newEnv(t *testing.T) *env {
	t.Helper()
	t.Parallel()
	return &env{etcdtest.NewEnv(t, etcdtest.Shared(t))}
}

// session opens a session that is closed with the test. Its TTL is so long that no renewal is sent
// during a test that counts requests.
func (s *env) session(cli *clientv3.Client, change ...func(*lease.Config)) *lease.Session {
	s.T.Helper()
	cfg := lease.Config{Lease: cli, Options: lease.Options{TTL: electiontest.Quiet}}
	for _, f := range change {
		f(&cfg)
	}
	session, err := lease.Open(s.Ctx, cfg)
	require.NoError(s.T, err)
	s.closed(session.Close)
	return session
}

// closed calls a Close at the end of the test, whose client may be partitioned.
func (s *env) closed(end func(context.Context) error) {
	s.T.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = end(ctx)
	})
}

// candidate makes a candidate with a session of its own, both closed with the test. It repeats no
// slow request and has no liveness checks of watches: on a busy machine either would add requests.
func (s *env) candidate(value string, change ...func(*election.Config)) *election.Candidate {
	s.T.Helper()
	cfg := election.Config{
		Election: s.Election, KV: s.Client, Watcher: s.Client, Value: []byte(value),
		Options: election.Options{Timeout: patience / 2, WatchCheck: -1},
	}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Session == nil {
		cfg.Session = s.session(s.Client)
	}
	c, err := election.New(cfg)
	require.NoError(s.T, err)
	s.closed(c.Close)
	return c
}

// on has a candidate use a session.
func on(session *lease.Session) func(*election.Config) {
	return func(cfg *election.Config) { cfg.Session = session }
}

// soon has a candidate give up requests that are not answered within 300 ms.
func soon(cfg *election.Config) { cfg.Timeout = 300 * time.Millisecond }

// ending has a candidate report the ends of its candidacies.
func ending() (ended chan election.EndedEvent, change func(*election.Config)) {
	ended = make(chan election.EndedEvent, 100)
	return ended, func(cfg *election.Config) { cfg.Hooks.Ended = func(e election.EndedEvent) { ended <- e } }
}

// gated makes a candidate whose transactions go through a gate.
func (s *env) gated(value string, change ...func(*election.Config)) (*election.Candidate, *gate) {
	s.T.Helper()
	g := newGate(s.Client)
	return s.candidate(value, append(change, func(cfg *election.Config) { cfg.KV = g })...), g
}

// behind makes a candidate whose client is on a host of its own; its session is not, so that only
// the candidate's requests meet the host's faults. The candidate gives up no request: the reply to
// a request that was given up cannot be swallowed.
func (s *env) behind(value string, change ...func(*election.Config)) (*election.Candidate, *etcdtest.Host) {
	s.T.Helper()
	host := etcdtest.Shared(s.T).Host(s.T)
	cli := host.Client(s.T)
	through := func(cfg *election.Config) { cfg.KV, cfg.Watcher = cli, cli }
	return s.candidate(value, append([]func(*election.Config){through}, change...)...), host
}

// waitingFor makes a candidate that campaigns and reports each predecessor.
func (s *env) waitingFor(value string, change ...func(*election.Config)) (*election.Candidate, <-chan electiontest.Outcome, <-chan election.WaitingEvent) {
	s.T.Helper()
	waits := make(chan election.WaitingEvent, 1000)
	c := s.candidate(value, append(change, func(cfg *election.Config) {
		cfg.Hooks.Waiting = func(e election.WaitingEvent) { waits <- e }
	})...)
	return c, s.campaigning(s.Ctx, c), waits
}

// lead has a candidate win at once.
func (s *env) lead(c *election.Candidate) *election.Leadership {
	s.T.Helper()
	l, err := c.Campaign(s.Ctx)
	require.NoError(s.T, err)
	require.NoError(s.T, l.Err())
	return l
}

func (s *env) register(c *election.Candidate) election.Position {
	s.T.Helper()
	place, err := c.Register(s.Ctx)
	require.NoError(s.T, err)
	return place
}

func (s *env) requeue(c *election.Candidate) election.Position {
	s.T.Helper()
	place, err := c.Requeue(s.Ctx)
	require.NoError(s.T, err)
	return place
}

func (s *env) await(c *election.Candidate) *election.Leadership {
	s.T.Helper()
	l, err := c.Await(s.Ctx)
	require.NoError(s.T, err)
	return l
}

// campaigning campaigns in the background.
func (s *env) campaigning(ctx context.Context, c *election.Candidate) <-chan electiontest.Outcome {
	return electiontest.After(func() (*election.Leadership, error) { return c.Campaign(ctx) })
}

// awaiting awaits the win in the background.
func (s *env) awaiting(c *election.Candidate) <-chan electiontest.Outcome {
	return electiontest.After(func() (*election.Leadership, error) { return c.Await(s.Ctx) })
}

// is requires an error that wraps all of these reasons.
func (s *env) is(err error, reasons ...error) {
	s.T.Helper()
	for _, reason := range reasons {
		require.ErrorIs(s.T, err, reason)
	}
}

// get receives, or fails the test.
func get[T any](s *env, from <-chan T) T {
	s.T.Helper()
	return etcdtest.Take(s.T, from, "what the test waits for")
}

// queued waits until n keys are in the election's range.
func (s *env) queued(n int) {
	s.T.Helper()
	s.Until("the queue's length", func() bool { return len(s.Queue()) == n })
}

// clean waits until the background clean-up has removed all keys while the session's lease exists.
func (s *env) clean(session *lease.Session) {
	s.T.Helper()
	s.Until("what was left is removed", func() bool { return len(s.Queue()) == 0 })
	require.NoError(s.T, session.Err(), "not with its lease")
}

// watched waits until etcd has created n watches for the recorded client, so that later counts do
// not include the start.
func (s *env) watched(n int) {
	s.T.Helper()
	s.Until("the watches are in place", func() bool { return len(s.Rec.Placed()) >= n })
}

// value returns the value of a key, which must exist.
func (s *env) value(key string) string {
	s.T.Helper()
	value, absent := s.Value(key)
	require.False(s.T, absent)
	return value
}

// over waits until a tenure has ended and returns why.
func (s *env) over(l *election.Leadership) error {
	s.T.Helper()
	get(s, l.Done())
	require.Error(s.T, l.Err())
	require.Equal(s.T, l.Err(), context.Cause(l.Context()))
	require.False(s.T, l.Holds(0))
	return l.Err()
}
