package regressions

import (
	"bufio"
	"context"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// beNode is the main function of a child that is an elector: it reports when it leads, and its
// status, now or at the first check after it was stopped, until its standard input ends.
func beNode(o order, cli *clientv3.Client, mark stopMark, say func(report)) {
	e, err := elector.New(elector.Config{
		Election: o.Election, NodeID: o.Node, Source: elector.Always(elector.Client(cli)),
		Session: lease.Options{TTL: o.TTL},
	})
	if err != nil {
		panic(err)
	}
	look := func(event string) {
		s := e.Status()
		r := report{Event: event, Role: s.Role().String()}
		if leader, follows := s.Leader(); follows {
			r.Token = int64(leader.Token)
		}
		say(r)
	}
	go func() {
		err := e.Run(context.Background(), func(ctx context.Context, l *elector.Leadership) error {
			say(report{Event: "leading", Key: l.Key(), Token: int64(l.Token())})
			<-ctx.Done()
			return nil
		})
		panic(err)
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "look" {
			look("looked")
			continue
		}
		// This command requests the first check after a pause, before any timer has fired: by a
		// goroutine that has the only processor and does not yield it.
		procs := runtime.GOMAXPROCS(1)
		before := mark.stops()
		say(report{Event: "ready"})
		for mark.stops() == before {
			continue
		}
		look("resumed")
		runtime.GOMAXPROCS(procs)
	}
	os.Exit(0)
}

// Row 10, in the loop. The process of the leader is stopped past its TTL. In other implementations
// it continues to lead when it resumes, until its next renewal. In Eldest the first read of its
// status returns unknown; then it campaigns again and follows the successor.
//
// Fails one time in two when Status does not read the clock: the runtime's timers race with the
// read. (elector has a test with a clock of its own, which fails each time.)
func TestRegression10_StatusOfAStoppedLeader(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	host := c.Host(t)
	old := startChild(t, order{Endpoints: host.Endpoints(), Election: name, TTL: 8 * time.Second, Node: "old"})
	next := stand(t, c.Client(t), name, "next", untilTheEnd)
	next.until(t, "following", func(s elector.Status) bool {
		leader, ok := s.Leader()
		return ok && leader.NodeID == "old" && leader.Token == eldest.Token(old.leading.Token)
	})
	old.Send("look after the pause")
	old.await("ready")
	old.stop()
	l := etcdtest.Take(t, next.won, "the successor's win")
	// It must not receive the loss before the first check.
	host.Hold(etcdtest.Outbound)
	t.Cleanup(host.Mend)
	old.Signal(syscall.SIGCONT)
	require.Equal(t, elector.Unknown.String(), old.await("resumed").Role)
	host.Mend()
	for begin, follows := time.Now(), false; !follows; {
		require.Less(t, time.Since(begin), etcdtest.Patience, "it does not follow the successor")
		old.Send("look")
		r := old.await("looked")
		require.NotEqual(t, elector.Leading.String(), r.Role)
		follows = r.Role == elector.Following.String() && r.Token == int64(l.Token())
	}
	require.Len(t, queueOf(t, c, name), 2)
	require.NoError(t, l.Err())
}

// Row 19, in the loop: a node is killed and starts again, with a TTL of a minute. In other
// implementations the new process waits a minute for the old one's key, and so do all other nodes.
// In Eldest it is configured to take over: it removes the key that the old process has left, and
// nothing else.
//
// Fails when the first round does not evict, or evicts by position.
func TestRegression19_KilledNodeStartsAgain(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	child := startChild(t, order{Endpoints: c.Endpoints(), Election: name, TTL: time.Minute, Node: "killed"})
	waits := stand(t, c.Client(t), name, "waits", untilTheEnd)
	waits.becomes(t, elector.Following)
	require.NoError(t, child.Cmd.Process.Kill())
	begin := time.Now()
	again := stand(t, c.Client(t), name, "killed", untilTheEnd, lasting(time.Minute), func(cfg *elector.Config) { cfg.TakeOver = true })
	l := etcdtest.Take(t, waits.won, "the waiter's win")
	again.follows(t, waits, l.Token())
	require.Less(t, time.Since(begin), 30*time.Second, "it waited for the old life's lease")
	require.Greater(t, int64(l.Token()), child.leading.Token)
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 2 }, "the two of them, and no ghost")
	require.NoError(t, l.Err())
}
