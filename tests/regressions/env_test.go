package regressions

import (
	"bytes"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/electiontest"
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

// onSession has a participant join with a session that exists.
func onSession(s *lease.Session) change {
	return func(_ *lease.Config, e *election.Config) { e.Session = s }
}

// stand starts a node, which is stopped with the test.
func stand(t testing.TB, cli *clientv3.Client, name, id string, lead electiontest.LeadFunc, changes ...func(*elector.Config)) *electiontest.Node {
	t.Helper()
	cfg := elector.Config{
		Election: name, NodeID: id, Address: id + ":1", Source: elector.Always(elector.Client(cli)),
		Session: lease.Config{TTL: 10 * time.Second},
	}
	cfg.Candidate.Timeout = 500 * time.Millisecond
	for _, change := range changes {
		change(&cfg)
	}
	return electiontest.Run(t, cfg, lead)
}

func lasting(ttl time.Duration) func(*elector.Config) {
	return func(cfg *elector.Config) { cfg.Session.TTL = ttl }
}

// quick looks often, where a test must not wait for an observer that looks seldom.
func quick(cfg *elector.Config) {
	cfg.Observer = observe.Config{Timeout: 250 * time.Millisecond, Recheck: 500 * time.Millisecond}
}

// goroutines counts those that the nodes of an election have started, whatever else
// goes on in the process: ours, and those of etcd's client that were started on their
// behalf. (The client keeps a watch stream that it could not open, at four goroutines
// each, for as long as the client lives; internal/watch uses four streams at the most.)
func goroutines(t testing.TB, election string) (ours, clients int) {
	t.Helper()
	var all bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 1))
	label := strconv.Quote("node") + ":" + strconv.Quote(election)
	// A record is "<count> @ <stack>", then its labels, then a line for each frame.
	for record := range strings.SplitSeq(all.String(), "\n\n") {
		head, frames, labelled := strings.Cut(record, "# labels: ")
		if !labelled || !strings.Contains(frames, label) {
			continue
		}
		head, _, _ = strings.Cut(head[strings.LastIndexByte(strings.TrimSpace(head), '\n')+1:], " @ ")
		n, err := strconv.Atoi(head)
		require.NoError(t, err, "%s", record)
		if strings.Contains(frames, "github.com/eldest-io/eldest/") {
			ours += n
		} else {
			clients += n
		}
	}
	return ours, clients
}
