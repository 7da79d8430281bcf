package regressions

import (
	"bytes"
	"context"
	"log/slog"
	"runtime/pprof"
	"strconv"
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
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// node is an elector that runs, together with what it has reported.
type node struct {
	*elector.Elector
	id     string
	won    chan *elector.Leadership
	rounds atomic.Int64 // how often it requested clients
	calls  atomic.Int64 // how often its lead function was called
	log    *journal
	stop   context.CancelFunc
	done   chan error
}

type leadFunc = func(context.Context, *elector.Leadership) error

// three starts a cluster of three whose election timeout is long enough that etcd keeps its own
// leader on a busy machine.
func three(t *testing.T) *etcdtest.Cluster {
	t.Helper()
	const election = 300 * time.Millisecond
	return etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: election / 10, Election: election})
}

// untilTheEnd is a lead function that does nothing until its context ends.
func untilTheEnd(ctx context.Context, _ *elector.Leadership) error {
	<-ctx.Done()
	return nil
}

// stand starts a node, which is stopped with the test.
func stand(t testing.TB, cli *clientv3.Client, name, id string, lead leadFunc, changes ...func(*elector.Config)) *node {
	t.Helper()
	n := &node{id: id, won: make(chan *elector.Leadership, 1024), log: &journal{}, done: make(chan error, 1)}
	cfg := elector.Config{
		Election: name, NodeID: id, Address: id + ":1", Source: elector.Always(elector.Client(cli)),
		Session: lease.Options{TTL: 10 * time.Second}, Logger: slog.New(n.log),
	}
	cfg.Candidate.Timeout = 500 * time.Millisecond
	for _, change := range changes {
		change(&cfg)
	}
	source := cfg.Source
	cfg.Source = func(ctx context.Context) (elector.Clients, error) {
		n.rounds.Add(1)
		return source(ctx)
	}
	var err error
	n.Elector, err = elector.New(cfg)
	require.NoError(t, err)
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	go pprof.Do(ctx, pprof.Labels("node", name), func(ctx context.Context) {
		n.done <- n.Run(ctx, func(ctx context.Context, l *elector.Leadership) error {
			n.calls.Add(1)
			n.won <- l
			return lead(ctx, l)
		})
	})
	t.Cleanup(func() { _ = n.end(t) })
	return n
}

// end stops the node and returns what Run returned.
func (n *node) end(t testing.TB) error {
	t.Helper()
	n.stop()
	err := etcdtest.Take(t, n.done, "the end of "+n.id)
	n.done <- err
	return err
}

func lasting(ttl time.Duration) func(*elector.Config) {
	return func(cfg *elector.Config) { cfg.Session.TTL = ttl }
}

// quick shortens the observer's timeouts, for tests that must not wait for the usual ones.
func quick(cfg *elector.Config) {
	cfg.Observer = observe.Options{Timeout: 250 * time.Millisecond, WatchCheck: 500 * time.Millisecond}
}

// until waits for a status.
func (n *node) until(t testing.TB, what string, want func(elector.Status) bool) elector.Status {
	t.Helper()
	s, err := n.Watch().NextWhere(etcdtest.Context(t), want)
	require.NoError(t, err, "%s is not %s, but %v", n.id, what, n.Status())
	return s
}

func (n *node) becomes(t testing.TB, role elector.Role) elector.Status {
	t.Helper()
	return n.until(t, role.String(), func(s elector.Status) bool { return s.Role() == role })
}

// at delivers the node's role at a moment, or a little later on a busy machine; Status reads the
// clock when it is called.
func (n *node) at(moment time.Time) <-chan elector.Role {
	role := make(chan elector.Role, 1)
	time.AfterFunc(time.Until(moment), func() { role <- n.Status().Role() })
	return role
}

// follows waits until the node follows a tenure of another one.
func (n *node) follows(t testing.TB, leader *node, token eldest.Token) {
	t.Helper()
	n.until(t, "following "+leader.id, func(s elector.Status) bool {
		seen, ok := s.Leader()
		return ok && seen.NodeID == leader.id && seen.Instance == leader.Instance() && seen.Token == token
	})
}

// oneLeads waits until one node leads and the others follow that tenure; it returns the leader's
// index, and how long that took. when is added to the failure message.
func oneLeads(t testing.TB, nodes []*node, when ...string) (leader int, took time.Duration) {
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
			if i != leader && (!follows || seen.Token != token || seen.NodeID != nodes[leader].id) {
				return false
			}
		}
		return leader >= 0
	}, strings.Join(append([]string{"one leads, and the others follow it"}, when...), " "))
	return leader, time.Since(begin)
}

// twoLead checks all nodes every millisecond until the test ends, and fails it then if two of them
// led at the same moment.
func twoLead(t *testing.T, nodes []*node) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	looks, twice := 0, 0
	var looking sync.WaitGroup
	looking.Go(func() {
		rhythm := time.NewTicker(time.Millisecond)
		defer rhythm.Stop()
		for begin := time.Now(); ctx.Err() == nil || looks < int(time.Since(begin)/(10*time.Millisecond)); looks++ {
			<-rhythm.C
			var first *node
			var led eldest.Token
			for _, n := range nodes {
				_, token, leads := n.Status().Own()
				if !leads {
					continue
				}
				if first != nil {
					// A node that led before another was checked, and leads the same tenure after
					// that, led at that moment as well.
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

// journal is a log handler that keeps its records.
type journal struct {
	mu       sync.Mutex
	statuses []elector.Status
	lines    []string
}

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, r.Level.String()+" "+r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if s, ok := a.Value.Any().(elector.Status); ok {
			j.statuses = append(j.statuses, s)
		}
		return true
	})
	return nil
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j *journal) WithGroup(string) slog.Handler            { return j }

// all returns every status that was ever published, in order, whether or not it was read at that
// moment.
func (j *journal) all() []elector.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]elector.Status(nil), j.statuses...)
}

func (j *journal) says(line string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if strings.Contains(l, line) {
			return true
		}
	}
	return false
}

// goroutines counts the goroutines that the nodes of an election have started, and no others of the
// process: ours, and those of etcd's client that were started for them. (The client keeps a watch
// stream that it could not open, at four goroutines each, for as long as the client lives;
// internal/watch uses at most four streams.)
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

// leasesOf counts the leases with a TTL, by which a test identifies its own leases.
func leasesOf(t testing.TB, c *etcdtest.Cluster, ttl time.Duration) int {
	t.Helper()
	cli := reader(t, c)
	all, err := cli.Leases(etcdtest.Context(t))
	require.NoError(t, err)
	n := 0
	for _, l := range all.Leases {
		left, err := cli.TimeToLive(etcdtest.Context(t), l.ID)
		require.NoError(t, err)
		if left.TTL > 0 && time.Duration(left.GrantedTTL)*time.Second == ttl {
			n++
		}
	}
	return n
}
