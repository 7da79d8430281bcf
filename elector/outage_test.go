package elector_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// outage is how long etcd is down: every day a few TTLs, and 60 s for the record
// (-outage=60s).
var outage = flag.Duration("outage", outageFromEnvironment(), "how long etcd is down in TestOutage")

func outageFromEnvironment() time.Duration {
	text := os.Getenv("ELDEST_OUTAGE")
	if text == "" {
		return 2 * short
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// etcd is down, all of it, and comes back. Within 10 s exactly one node leads and the
// others follow it; the queue is those nodes, with a lease each; and when they have
// ended nothing of the outage is left, neither goroutines nor keys nor leases.
//
// Fails when rounds pile up, when a round does not wait for what it has begun, or when
// a node comes back beside its own key of before.
func TestOutage(t *testing.T) {
	t.Parallel()
	sources := map[string]func(t *testing.T, c *etcdtest.Cluster, i int) elector.Source{
		// As etcd's documentation has it. gRPC by itself looks for a server that was away
		// for a minute only every half minute.
		"one plain client": func(t *testing.T, c *etcdtest.Cluster, _ int) elector.Source {
			cli, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
			require.NoError(t, err)
			t.Cleanup(func() { _ = cli.Close() })
			return elector.Always(elector.Client(cli))
		},
		"a client of one member": func(t *testing.T, c *etcdtest.Cluster, i int) elector.Source {
			return elector.Always(elector.Client(c.ClientTo(t, i)))
		},
		"a client for each round": func(t *testing.T, c *etcdtest.Cluster, _ int) elector.Source {
			return redialling(t, clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
		},
	}
	for what, source := range sources {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := three(t)
			o := &outing{cluster: c, name: electionOf(t)}
			for i := range 3 {
				o.stand(t, source(t, c, i))
				agree(t, o.nodes, patience)
			}
			o.play(t, *outage, sample(t, o.nodes))
		})
	}
}

// redialling is a source that closes the client of the last round and dials a new one.
// The last client is closed with the test.
func redialling(t *testing.T, cfg clientv3.Config) elector.Source {
	var mu sync.Mutex
	var last *clientv3.Client
	closeLast := func() {
		if last != nil {
			_ = last.Close()
		}
	}
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		closeLast()
	})
	return func(context.Context) (elector.Clients, error) {
		mu.Lock()
		defer mu.Unlock()
		closeLast()
		var err error
		if last, err = clientv3.New(cfg); err != nil {
			return elector.Clients{}, err
		}
		return elector.Client(last), nil
	}
}

// outing is the stage of an outage.
type outing struct {
	cluster *etcdtest.Cluster
	name    string
	nodes   []*node
	rounds  atomic.Int64
}

// stand starts one more node. What it starts is labelled with the election.
func (o *outing) stand(t *testing.T, source elector.Source) {
	t.Helper()
	cfg := config(o.name, "n"+strconv.Itoa(len(o.nodes)), nil, ttl(short), func(cfg *elector.Config) {
		cfg.Observer = observe.Config{} // as everybody has it
		cfg.Source = func(ctx context.Context) (elector.Clients, error) {
			o.rounds.Add(1)
			return source(ctx)
		}
	})
	e, err := elector.New(cfg)
	require.NoError(t, err)
	n := &node{Elector: e, id: cfg.NodeID, won: make(chan *elector.Leadership, 1024), done: make(chan error, 1)}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	go pprof.Do(ctx, pprof.Labels("election", o.name), func(ctx context.Context) {
		n.done <- e.Run(ctx, func(ctx context.Context, l *elector.Leadership) error {
			n.won <- l
			<-ctx.Done()
			return nil
		})
	})
	t.Cleanup(func() { _ = n.end(t) })
	o.nodes = append(o.nodes, n)
}

func (o *outing) play(t *testing.T, d time.Duration, seen *samples) {
	t.Helper()
	first := take(t, o.nodes[0].won, "the first tenure")
	running := o.goroutines(t)
	require.Positive(t, running, "INVALID: nobody's goroutines are counted")
	rounds := o.rounds.Load()
	for i := range 3 {
		require.NoError(t, o.cluster.Member(i).Kill())
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	begin := time.Now()
	for i := range o.nodes {
		require.Less(t, seen.became(t, i, elector.Neither, begin), short)
	}
	require.NoError(t, ctx.Err(), "INVALID: the outage is too short to be noticed")
	require.ErrorIs(t, first.Err(), eldest.ErrSessionLost)
	<-ctx.Done() // the fault itself
	for _, n := range o.nodes {
		require.Equal(t, elector.Neither, n.Status().Role(), "%v", n.Status())
		require.NotErrorIs(t, n.Status().Reason(), eldest.ErrClosed)
	}
	rounds = o.rounds.Load() - rounds
	require.LessOrEqual(t, o.goroutines(t), running+len(o.nodes), "goroutines pile up")
	// At most a round in ten seconds, after the first ones.
	require.LessOrEqual(t, rounds, int64(len(o.nodes)*(3+int(d/(5*time.Second)))))

	back := time.Now()
	require.NoError(t, o.cluster.Restart(within(t), 0, 1, 2))
	restarted := time.Since(back)
	leader := agree(t, o.nodes, 3*patience)
	took := time.Since(back)
	t.Logf("down for %v: %d rounds of %d nodes; etcd is up after %v, one leads and the others follow it after %v",
		d, rounds, len(o.nodes), restarted, took)
	require.Less(t, took-restarted, 10*time.Second)
	_, token, _ := o.nodes[leader].Status().Own()
	require.Greater(t, token, first.Token())

	cli := o.cluster.Client(t)
	require.Eventually(t, func() bool {
		leases, err := cli.Leases(within(t))
		return err == nil && len(leases.Leases) == 3 && len(queueOf(t, cli, o.name)) == 3
	}, patience, 10*time.Millisecond, "keys or leases are left")
	require.ElementsMatch(t, []string{"n0", "n1", "n2"}, nodesOf(t, queueOf(t, cli, o.name)))
	for _, n := range o.nodes {
		_ = n.end(t)
	}
	require.Eventually(t, func() bool { return o.goroutines(t) == 0 }, patience, 10*time.Millisecond, "goroutines are left")
	// A member lists the leases that it knows of, and may be a little behind.
	require.Eventually(t, func() bool {
		leases, err := cli.Leases(within(t))
		return err == nil && len(leases.Leases) == 0
	}, patience, 10*time.Millisecond, "leases are left")
	require.Empty(t, queueOf(t, cli, o.name))
}

// goroutines counts those of ours that the nodes have started, whatever else goes on in
// the process.
func (o *outing) goroutines(t *testing.T) int {
	t.Helper()
	var all bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 1))
	count := 0
	// A record is "<count> @ <stack>", then its labels, then a line for each frame.
	for record := range strings.SplitSeq(all.String(), "\n\n") {
		head, frames, labelled := strings.Cut(record, "# labels: ")
		if !labelled || !strings.Contains(frames, strconv.Quote(o.name)) || !strings.Contains(frames, "eldest-io/eldest/") {
			continue
		}
		head, _, _ = strings.Cut(head[strings.LastIndexByte(strings.TrimSpace(head), '\n')+1:], " @ ")
		n, err := strconv.Atoi(head)
		require.NoError(t, err, "%s", record)
		count += n
	}
	return count
}
