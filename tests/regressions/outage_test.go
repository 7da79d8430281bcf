package regressions

import (
	"context"
	"errors"
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// awayTTL is the TTL of the nodes in row 26: shorter than the outages, and long enough that no node
// loses a lease on a busy machine.
const awayTTL = 4 * time.Second

// outages is how long etcd is unavailable in row 26. The default is longer than the TTL; the
// durations of the row itself are -outages=10s,30s,2m.
var outages = flag.String("outages", "8s", "how long etcd is away, a list of durations")

// share returns the names of the cases that this run has: first, which are essential, and half of the others.
func share[C any](t *testing.T, cases map[string]C, first ...string) []string {
	t.Helper()
	names := slices.Sorted(maps.Keys(cases))
	require.Subset(t, names, first)
	others := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(first, name) })
	return append(etcdtest.Share(t, (len(others)+1)/2, others...), first...)
}

// away is a way to make these members of etcd unavailable.
type away struct {
	begin, end func(t *testing.T, c *etcdtest.Cluster, members ...int)
	// goesOn: a member comes back with its whole state, and may act on it.
	goesOn bool
}

var killed = away{
	begin: func(t *testing.T, c *etcdtest.Cluster, members ...int) {
		for _, i := range members {
			require.NoError(t, c.Member(i).Kill())
		}
	},
	end: func(t *testing.T, c *etcdtest.Cluster, members ...int) {
		require.NoError(t, c.Restart(etcdtest.Context(t), members...))
	},
}

var halted = away{
	begin: func(t *testing.T, c *etcdtest.Cluster, members ...int) {
		for _, i := range members {
			require.NoError(t, c.Member(i).Stop())
		}
	},
	end: func(t *testing.T, c *etcdtest.Cluster, members ...int) {
		for _, i := range members {
			require.NoError(t, c.Member(i).Cont())
		}
	},
	goesOn: true,
}

// Row 26. etcd is unavailable for longer than the TTL and comes back: all members or one, killed or
// stopped. In other implementations no node leads afterwards, or two do, or the waiters have
// dropped out of the queue without an error. In Eldest exactly one node leads afterwards and all
// others are queued behind it; the outage of one member of three does not affect any node. A run has
// a share of the cases, and -all runs all of them.
//
// Fails when a round that ends while etcd is unavailable is the last one, or when a node registers
// behind the key of its own earlier round.
func TestRegression26_EtcdAway(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*testing.T, time.Duration){
		"all killed":                       func(t *testing.T, d time.Duration) { allAway(t, killed, d, sameClient) },
		"all killed, plain clients":        func(t *testing.T, d time.Duration) { allAway(t, killed, d, plainClient) },
		"all killed, clients of a member":  func(t *testing.T, d time.Duration) { allAway(t, killed, d, clientOfOne) },
		"all killed, clients of one round": func(t *testing.T, d time.Duration) { allAway(t, killed, d, clientOfARound) },
		"all stopped":                      func(t *testing.T, d time.Duration) { allAway(t, halted, d, sameClient) },
		"one killed":                       func(t *testing.T, d time.Duration) { oneAway(t, killed, d) },
		"one stopped":                      func(t *testing.T, d time.Duration) { oneAway(t, halted, d) },
	}
	names := share(t, cases, "all killed", "one stopped")
	for text := range strings.SplitSeq(*outages, ",") {
		d, err := time.ParseDuration(text)
		require.NoError(t, err)
		for _, what := range names {
			t.Run(what+" for "+text, func(t *testing.T) {
				t.Parallel()
				cases[what](t, d)
			})
		}
	}
}

// clients makes the source of clients of node number i: the same client for all rounds or not.
type clients func(t *testing.T, c *etcdtest.Cluster, i int) elector.Source

func sameClient(t *testing.T, c *etcdtest.Cluster, _ int) elector.Source {
	return elector.Always(elector.Client(c.Client(t)))
}

// plainClient is a client as in etcd's documentation. By default gRPC tries to reconnect to a
// server that was unavailable for a minute only every half minute.
func plainClient(t *testing.T, c *etcdtest.Cluster, _ int) elector.Source {
	cli, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = cli.Close() })
	return elector.Always(elector.Client(cli))
}

func clientOfOne(t *testing.T, c *etcdtest.Cluster, i int) elector.Source {
	return elector.Always(elector.Client(c.ClientTo(t, i)))
}

// clientOfARound is a source that closes the client of the last round and dials another one.
func clientOfARound(t *testing.T, c *etcdtest.Cluster, _ int) elector.Source {
	var last *clientv3.Client
	closeLast := func() {
		if last != nil {
			_ = last.Close()
		}
	}
	t.Cleanup(closeLast)
	return func(context.Context) (elector.Clients, error) {
		closeLast()
		var err error
		last, err = clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
		return elector.Client(last), err
	}
}

// standThree starts three nodes; the first one leads.
func standThree(t *testing.T, c *etcdtest.Cluster, name string, of clients, changes ...func(*elector.Config)) []*node {
	t.Helper()
	var nodes []*node
	for i := range 3 {
		source := of(t, c, i)
		nodes = append(nodes, stand(t, nil, name, "n"+itoa(i), untilTheEnd, append([]func(*elector.Config){lasting(awayTTL), func(cfg *elector.Config) { cfg.Source = source }}, changes...)...))
		oneLeads(t, nodes)
	}
	twoLead(t, nodes)
	return nodes
}

func allAway(t *testing.T, how away, d time.Duration, of clients) {
	c := three(t)
	name := etcdtest.Election(t)
	nodes := standThree(t, c, name, of) // with the default observers
	first := etcdtest.Take(t, nodes[0].won, "the first tenure")
	running, _ := goroutines(t, name)
	require.Positive(t, running, "INVALID: nobody's goroutines are counted")
	rounds := roundsOf(nodes)
	how.begin(t, c, 0, 1, 2)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	late := map[*node]<-chan elector.Role{}
	for _, n := range nodes {
		late[n] = n.at(time.Now().Add(awayTTL))
	}
	for _, n := range nodes {
		s := n.becomes(t, elector.Unknown)
		require.Error(t, s.Reason())
		role := etcdtest.Take(t, late[n], "the end of its lease")
		require.Equal(t, elector.Unknown, role, "%s claims to know who leads for longer than its lease", n.id)
	}
	require.NoError(t, ctx.Err(), "INVALID: the outage is too short")
	require.ErrorIs(t, first.Err(), eldest.ErrSessionLost)
	<-ctx.Done() // the fault itself
	for _, n := range nodes {
		require.Equal(t, elector.Unknown, n.Status().Role(), "%v", n.Status())
		require.NotErrorIs(t, n.Status().Reason(), eldest.ErrClosed)
	}
	// At most one round in five seconds for each node, after the first ones.
	require.LessOrEqual(t, roundsOf(nodes)-rounds, int64(len(nodes)*(3+int(d/(5*time.Second)))))
	ours, _ := goroutines(t, name)
	require.LessOrEqual(t, ours, 2*running, "goroutines pile up")
	how.end(t, c, 0, 1, 2)
	leader, took := oneLeads(t, nodes, "after etcd's return")
	t.Logf("n%d leads %v after etcd's return", leader, took)
	if how.goesOn { // its leases may have been revoked meanwhile, and its members must elect
		require.Less(t, took, 40*time.Second)
	} else {
		require.Less(t, took, 10*time.Second)
	}
	etcdtest.Eventually(t, func() bool { return len(queueOf(t, c, name)) == 3 }, "all stand again, and nothing else does")
	_, token, _ := nodes[leader].Status().Own()
	require.Greater(t, token, first.Token())
	etcdtest.Eventually(t, func() bool { return leasesOf(t, c, awayTTL) == 3 }, "leases are left")
	for _, n := range nodes {
		_ = n.end(t)
	}
	// With the clients still open: everything that the rounds have started has ended with them.
	etcdtest.Eventually(t, func() bool {
		ours, theirs := goroutines(t, name)
		return ours == 0 && theirs <= 4*4*len(nodes)
	}, "goroutines are left")
	etcdtest.Eventually(t, func() bool { return leasesOf(t, c, awayTTL) == 0 }, "leases are left")
	require.Empty(t, queueOf(t, c, name))
}

// roundsOf counts how often the nodes have requested clients.
func roundsOf(nodes []*node) (n int64) {
	for _, node := range nodes {
		n += node.rounds.Load()
	}
	return n
}

func oneAway(t *testing.T, how away, d time.Duration) {
	c := three(t)
	name := etcdtest.Election(t)
	// The TTL is shorter than the outage, and longer than a busy machine and etcd's own election
	// together keep a renewal waiting.
	nodes := standThree(t, c, name, sameClient, quick, lasting(6*time.Second))
	first := etcdtest.Take(t, nodes[0].won, "the first tenure")
	before := queueOf(t, c, name)
	// etcd's own leader, so that its successor has to be elected as well; but a leader that is
	// stopped for longer than the TTL may revoke all leases when it continues (decision 0016), so
	// in that case it is another member.
	gone, err := c.Leader(etcdtest.Context(t))
	require.NoError(t, err)
	if how.goesOn {
		gone = (gone + 1) % c.Size()
	}
	how.begin(t, c, gone)
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	<-ctx.Done() // the fault itself
	require.NoError(t, first.Err(), "one member of three cost the leader its tenure")
	how.end(t, c, gone)
	oneLeads(t, nodes)
	require.NoError(t, first.Err())
	require.Equal(t, before, queueOf(t, c, name), "one member of three cost somebody its place")
	for _, n := range nodes {
		require.EqualValues(t, 1, n.rounds.Load())
	}
}

// Row 28. etcd is unavailable for 3 s, and the election loop continues. In other implementations it
// makes hundreds of rounds. In Eldest it makes at most 8, whatever makes the rounds fail: while
// etcd is unavailable they hardly end at all, and where a step fails at once the back-off separates
// them.
//
// Fails when elector.rounds does not pause, or always uses the first pause.
func TestRegression28_FewRoundsWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	const span, most = 3 * time.Second, 8
	gone, stopped := etcdtest.Start(t, etcdtest.Config{}), etcdtest.Start(t, etcdtest.Config{})
	name := etcdtest.Election(t)
	dead := gone.Client(t)
	require.NoError(t, dead.Close())
	led := stand(t, gone.Client(t), name, "led", untilTheEnd, lasting(2*time.Second), quick)
	etcdtest.Take(t, led.won, "the win")
	waits := stand(t, gone.Client(t), name, "waits", untilTheEnd, lasting(2*time.Second), quick)
	waits.becomes(t, elector.Following) // any tenure of led: a busy machine may end one or two of them
	require.NoError(t, etcdtest.Err(stopped.Client(t).Get(etcdtest.Context(t), "connected")))

	before := map[*node]int64{led: led.rounds.Load(), waits: waits.rounds.Load()}
	killed.begin(t, gone, 0)
	halted.begin(t, stopped, 0)
	ctx, cancel := context.WithTimeout(context.Background(), span)
	defer cancel()
	refused := errors.New("refused at once")
	nodes := []*node{led, waits,
		stand(t, gone.Client(t), name, "killed", untilTheEnd),
		stand(t, stopped.Client(t), name, "stopped", untilTheEnd),
		stand(t, dead, name, "closed client", untilTheEnd),
		stand(t, nil, name, "nil client", untilTheEnd),
		stand(t, nil, name, "no source", untilTheEnd, func(cfg *elector.Config) {
			cfg.Source = func(context.Context) (elector.Clients, error) { return elector.Clients{}, refused }
		}),
		// A node that dials anew in each round, and has short timeouts.
		stand(t, nil, name, "dials", untilTheEnd, func(cfg *elector.Config) {
			var last *clientv3.Client
			t.Cleanup(func() {
				if last != nil {
					_ = last.Close()
				}
			})
			cfg.Source = func(ctx context.Context) (elector.Clients, error) {
				if last != nil {
					_ = last.Close()
				}
				cli, err := gone.Dial()
				if err != nil {
					return elector.Clients{}, err
				}
				last = cli
				ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
				_, err = cli.Get(ctx, "ready?")
				return elector.Client(cli), err
			}
		}),
	}
	<-ctx.Done() // the fault itself
	for _, n := range nodes {
		rounds := n.rounds.Load() - before[n]
		t.Logf("%s: %d rounds in %v, %v", n.id, rounds, span, n.Status())
		require.LessOrEqual(t, rounds, int64(most), "%s", n.id)
		require.Equal(t, elector.Unknown, n.Status().Role(), "%s", n.id)
	}
	for _, n := range nodes[2:4] {
		require.NotErrorIs(t, n.Status().Reason(), eldest.ErrClosed, "%s is at it", n.id)
	}
	require.Greater(t, nodes[6].rounds.Load(), int64(2), "INVALID: nothing was tried")
	require.ErrorIs(t, nodes[6].Status().Reason(), refused)
	// Nodes that only waited for etcd have not given up.
	killed.end(t, gone, 0)
	oneLeads(t, []*node{led, waits, nodes[2], nodes[7]})
	_ = nodes[3].end(t) // before its etcd is stopped
	halted.end(t, stopped, 0)
}
