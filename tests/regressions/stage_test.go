package regressions

import (
	"fmt"
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

// Those who take part, as electiontest has them.
type (
	participant = electiontest.Participant
	change      = electiontest.Change
)

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
	return electiontest.Join(t, cli, name, append([]change{ttl(quiet)}, changes...)...)
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
	return electiontest.Keys(t, reader(t, c), name)
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
