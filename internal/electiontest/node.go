package electiontest

import (
	"context"
	"log/slog"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Node is an elector that runs, with what it has reported.
type Node struct {
	*elector.Elector
	ID     string
	Won    chan *elector.Leadership
	Rounds atomic.Int64 // how often it asked for clients
	Calls  atomic.Int64 // how often its lead function was called
	Log    *Journal
	Stop   context.CancelFunc

	done chan error
}

// LeadFunc is what a node calls when it leads.
type LeadFunc = func(context.Context, *elector.Leadership) error

// UntilTheEnd is a LeadFunc that does nothing until its context ends.
func UntilTheEnd(ctx context.Context, _ *elector.Leadership) error {
	<-ctx.Done()
	return nil
}

// Run starts a node, which is stopped with the test. Its goroutines have the election's name as the
// profiler's label "node". It logs to its Log unless it has a Logger.
func Run(t testing.TB, cfg elector.Config, lead LeadFunc) *Node {
	t.Helper()
	n := &Node{ID: cfg.NodeID, Won: make(chan *elector.Leadership, 1024), Log: &Journal{}, done: make(chan error, 1)}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(n.Log)
	}
	source := cfg.Source
	cfg.Source = func(ctx context.Context) (elector.Clients, error) {
		n.Rounds.Add(1)
		return source(ctx)
	}
	var err error
	n.Elector, err = elector.New(cfg)
	require.NoError(t, err)
	var ctx context.Context
	ctx, n.Stop = context.WithCancel(context.Background())
	go pprof.Do(ctx, pprof.Labels("node", cfg.Election), func(ctx context.Context) {
		n.done <- n.Elector.Run(ctx, func(ctx context.Context, l *elector.Leadership) error {
			n.Calls.Add(1)
			n.Won <- l
			return lead(ctx, l)
		})
	})
	t.Cleanup(func() { _ = n.End(t) })
	return n
}

// End stops the node, waits for it, and returns what its Run returned.
func (n *Node) End(t testing.TB) error {
	t.Helper()
	n.Stop()
	err := etcdtest.Take(t, n.done, "the end of "+n.ID)
	n.done <- err
	return err
}

// Wins waits for a tenure.
func (n *Node) Wins(t testing.TB) *elector.Leadership {
	t.Helper()
	return etcdtest.Take(t, n.Won, "a win of "+n.ID)
}

// Until waits for a status.
func (n *Node) Until(t testing.TB, what string, want func(elector.Status) bool) elector.Status {
	t.Helper()
	s, err := n.Watch().NextWhere(etcdtest.Context(t), want)
	require.NoError(t, err, "%s is not %s, but %v", n.ID, what, n.Status())
	return s
}

// Becomes waits until the node has a role.
func (n *Node) Becomes(t testing.TB, role elector.Role) elector.Status {
	t.Helper()
	return n.Until(t, role.String(), func(s elector.Status) bool { return s.Role() == role })
}

// Follows waits until the node follows another one, in any tenure, or in the given one.
func (n *Node) Follows(t testing.TB, id string, tenure ...eldest.Token) elector.Leader {
	t.Helper()
	s := n.Until(t, "following "+id, func(s elector.Status) bool {
		l, ok := s.Leader()
		return ok && l.NodeID == id && (len(tenure) == 0 || l.Token == tenure[0])
	})
	l, _ := s.Leader()
	return l
}

// OneLeads waits until one node leads and the others follow that tenure. It returns the leader's
// number, and how long that took. when is for the failure to say.
func OneLeads(t testing.TB, nodes []*Node, when ...string) (leader int, took time.Duration) {
	t.Helper()
	begin := time.Now()
	etcdtest.Eventually(t, func() bool {
		leader = -1
		var token eldest.Token
		for i, n := range nodes {
			if _, own, leads := n.Status().Own(); leads {
				if leader >= 0 {
					return false
				}
				leader, token = i, own
			}
		}
		for i, n := range nodes {
			seen, follows := n.Status().Leader()
			if i != leader && (!follows || seen.Token != token || seen.NodeID != nodes[leader].ID) {
				return false
			}
		}
		return leader >= 0
	}, strings.Join(append([]string{"one leads, and the others follow it"}, when...), " "))
	return leader, time.Since(begin)
}

// NeverTwo looks at all nodes each millisecond until the test ends, and fails it then if two of them led
// at one moment.
func NeverTwo(t *testing.T, nodes []*Node) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	looks, twice := 0, 0
	var looking sync.WaitGroup
	looking.Go(func() {
		rhythm := time.NewTicker(time.Millisecond)
		defer rhythm.Stop()
		for begin := time.Now(); ctx.Err() == nil || looks < int(time.Since(begin)/(10*time.Millisecond)); looks++ {
			<-rhythm.C
			var first *Node
			var led eldest.Token
			for _, n := range nodes {
				_, token, leads := n.Status().Own()
				if !leads {
					continue
				}
				if first != nil {
					// One that led before another was looked at, and leads the
					// same tenure after that, led at that moment as well.
					if _, still, ok := first.Status().Own(); ok && still == led {
						twice++
					}
				}
				first, led = n, token
			}
		}
	})
	t.Cleanup(func() {
		stop()
		looking.Wait()
		require.Zero(t, twice, "looks of %d at which two nodes led", looks)
		t.Logf("two leaders in 0 of %d looks", looks)
	})
}

// Three starts a cluster of three whose election timeout is long enough for a busy machine
// not to cost etcd its own leader, and short enough for a TTL.
func Three(t *testing.T) *etcdtest.Cluster {
	t.Helper()
	const election = 300 * time.Millisecond
	return etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: election / 10, Election: election})
}

// LeasesOf counts the leases with a TTL, by which a test tells its own from others.
func LeasesOf(t testing.TB, cli *clientv3.Client, ttl time.Duration) (n int) {
	t.Helper()
	all, err := cli.Leases(etcdtest.Context(t))
	require.NoError(t, err)
	for _, l := range all.Leases {
		left, err := cli.TimeToLive(etcdtest.Context(t), l.ID)
		require.NoError(t, err)
		if left.TTL > 0 && time.Duration(left.GrantedTTL)*time.Second == ttl {
			n++
		}
	}
	return n
}

// Journal is a log handler that keeps all lines, and every status that was ever published.
type Journal struct {
	mu       sync.Mutex
	statuses []elector.Status
	lines    []string
}

// Handle keeps a record.
func (j *Journal) Handle(_ context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		if s, ok := a.Value.Any().(elector.Status); ok {
			j.statuses = append(j.statuses, s)
		}
		line += " " + a.String()
		return true
	})
	j.lines = append(j.lines, line)
	return nil
}

// Enabled is always true.
func (j *Journal) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs leaves attributes of all lines out.
func (j *Journal) WithAttrs([]slog.Attr) slog.Handler { return j }

// WithGroup leaves groups out.
func (j *Journal) WithGroup(string) slog.Handler { return j }

// Statuses returns every status that was ever published, in order, whether or not anybody
// looked at that moment.
func (j *Journal) Statuses() []elector.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]elector.Status(nil), j.statuses...)
}

// Says reports whether a line contains a text.
func (j *Journal) Says(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}
