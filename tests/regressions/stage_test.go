package regressions

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// atOnce limits events that happen without any wait; it allows for a busy machine, and is shorter
// than any TTL. inMilliseconds checks how soon they happen on a machine that is not busy.
const atOnce = 6 * time.Second

// inMilliseconds requires that a notification without any wait comes quickly in at least one of
// some tries: a busy machine is slow sometimes, a program that waits is slow always.
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

// The participants, as in electiontest.
type (
	participant = electiontest.Participant
	change      = electiontest.Change
)

// quiet is a TTL with which renewals and liveness checks hardly disturb a test.
const quiet = 60 * time.Second

// eager renews so often that a session keeps its lease even on a busy machine, and that a test can
// measure several TTLs by the number of renewals.
func eager(granted time.Duration) lease.Renewal {
	return lease.Renewal{Every: granted / eagerness, Timeout: granted / 4}
}

const eagerness = 12

func ttl(d time.Duration) change { return func(l *lease.Config, _ *election.Config) { l.TTL = d } }

// join makes a participant, which is closed with the test.
func join(t testing.TB, cli *clientv3.Client, name string, changes ...change) *participant {
	t.Helper()
	return electiontest.Join(t, cli, name, append([]change{ttl(quiet)}, changes...)...)
}

// readers are the clients of reader, by test and cluster.
var readers sync.Map

// reader returns a client for the repeated reads of a test, made once.
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
	return electiontest.Keys(t, reader(t, c), name)
}

// theirs makes a candidate of etcd's own package, and its session.
func theirs(t testing.TB, cli *clientv3.Client, name string, seconds int) (*concurrency.Session, *concurrency.Election) {
	t.Helper()
	s, err := concurrency.NewSession(cli, concurrency.WithTTL(seconds))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, concurrency.NewElection(s, name)
}

// onSession makes a participant join with an existing session.
func onSession(s *lease.Session) change {
	return func(_ *lease.Config, e *election.Config) { e.Session = s }
}
