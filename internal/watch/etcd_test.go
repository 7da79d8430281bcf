package watch_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
)

// outcome is what Gone returned.
type outcome struct {
	revision int64
	err      error
}

func gone(ctx context.Context, s *watch.Source, l watch.Life) outcome {
	revision, err := s.Gone(ctx, l)
	return outcome{revision, err}
}

// picture is a range as its follower has received it.
type picture struct {
	mu          sync.Mutex
	kvs         map[string]string
	revision    int64
	snapshots   int
	interrupted []error
}

// follow follows the keys with a prefix until the test ends, and waits for the first snapshot. Snapshots
// and changes must come in the order of their revisions, each change once.
func follow(t *testing.T, s *watch.Source, prefix string) *picture {
	t.Helper()
	p := &picture{}
	ctx, cancel := context.WithCancel(context.Background())
	result := start(func() error {
		return s.Follow(ctx, watch.Target{
			Key: prefix, End: clientv3.GetPrefixRangeEnd(prefix),
			Snapshot: func(resp *clientv3.GetResponse) bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				assert.GreaterOrEqual(t, resp.Header.Revision, p.revision, "a snapshot")
				p.kvs, p.revision = map[string]string{}, resp.Header.Revision
				p.snapshots++
				for _, kv := range resp.Kvs {
					p.kvs[string(kv.Key)] = string(kv.Value)
				}
				return false
			},
			Change: func(revision int64, events []*clientv3.Event) bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				assert.Greater(t, revision, p.revision, "a change")
				p.revision = revision
				for _, e := range events {
					assert.Equal(t, revision, e.Kv.ModRevision)
					if p.kvs[string(e.Kv.Key)] = string(e.Kv.Value); e.Type == mvccpb.DELETE {
						delete(p.kvs, string(e.Kv.Key))
					}
				}
				return false
			},
			Interrupted: func(reason error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.interrupted = append(p.interrupted, reason)
			},
			Probe: func() (clientv3.Op, func(clientv3.OpResponse) bool) { // the newest key: the picture must be as new
				op := clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
				return op, func(answer clientv3.OpResponse) bool {
					p.mu.Lock()
					defer p.mu.Unlock()
					kvs := answer.Get().Kvs
					return len(kvs) == 0 || kvs[0].ModRevision <= p.revision
				}
			},
		})
	})
	t.Cleanup(func() { cancel(); require.ErrorIs(t, <-result, context.Canceled) })
	p.until(t, "the first snapshot", func() bool { return p.snapshots > 0 })
	return p
}

// until blocks until a condition on the picture holds.
func (p *picture) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	etcdtest.Eventually(t, func() bool { p.mu.Lock(); defer p.mu.Unlock(); return holds() }, "%s", what)
}

// patient returns a Source whose time-outs a busy machine does not exceed.
func patient(cli *clientv3.Client) *watch.Source {
	return &watch.Source{KV: cli, Watcher: cli, Backoff: retry.Default(), Timeout: etcdtest.Patience / 4, WatchCheck: etcdtest.Patience / 4}
}

// TestFollowUnderWrites: snapshot and changes together equal the store, while writers write from
// before the start.
func TestFollowUnderWrites(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	prefix := etcdtest.Election(t) + "/"
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 100 {
				key := fmt.Sprintf("%s%d-%d", prefix, w, i%7)
				op := clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut(key, fmt.Sprint(i)), clientv3.OpPut(key+"x", fmt.Sprint(i))}, nil)
				if i%5 == 4 {
					op = clientv3.OpDelete(key)
				}
				assert.NoError(t, etcdtest.Err(cli.Do(etcdtest.Context(t), op)))
			}
		})
	}
	s := patient(cli)
	pictures := []*picture{follow(t, s, prefix), follow(t, s, prefix), follow(t, s, prefix)}
	writers.Wait()
	last, err := cli.Put(etcdtest.Context(t), prefix+"last", "1")
	require.NoError(t, err)
	resp, err := cli.Get(etcdtest.Context(t), prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	store := map[string]string{}
	for _, kv := range resp.Kvs {
		store[string(kv.Key)] = string(kv.Value)
	}
	for _, p := range pictures {
		p.until(t, "the last write", func() bool { return p.revision >= last.Header.Revision })
		require.Equal(t, store, p.kvs)
		require.Equal(t, 1, p.snapshots)
		require.Empty(t, p.interrupted)
	}
}

// interruptions returns the interruptions so far.
func (p *picture) interruptions() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.interrupted)
}

// wary returns a Source with time-outs so short that etcd counts as unavailable soon, and sometimes
// wrongly.
func wary(cli *clientv3.Client) *watch.Source {
	return &watch.Source{KV: cli, Watcher: cli, Backoff: retry.Default(), Timeout: 300 * time.Millisecond, WatchCheck: 300 * time.Millisecond}
}

// TestRegression9BlackHoledStream: the member that carries the watch drops all traffic and closes
// no connection. The check gets its answer from another member, and the watch continues there.
func TestRegression9BlackHoledStream(t *testing.T) {
	t.Parallel()
	// The election timeout is long: elections on a busy machine would refuse the writes, and move
	// the watch.
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 100 * time.Millisecond})
	writer := c.Client(t)
	h := c.Host(t)
	s := wary(h.Client(t))
	prefix := etcdtest.Election(t) + "/"
	p := follow(t, s, prefix)
	shows := func(value string) {
		t.Helper()
		require.NoError(t, etcdtest.Err(writer.Put(etcdtest.Context(t), prefix+"a", value)))
		p.until(t, value, func() bool { return p.kvs[prefix+"a"] == value })
	}
	// swallowed makes the proxy of the member that carries the watch drop everything, and reports
	// whether that interrupted the watch: on a busy machine the watch may have been moving to
	// another member.
	swallowed := func(attempt int) bool {
		before := make([]int64, c.Size())
		for i := range before {
			before[i] = h.Proxy(i).Stats().Passed.Outbound
		}
		// More events than any handshake has frames.
		const events = 50
		for i := range events {
			shows(fmt.Sprint("x", attempt, i))
		}
		carrier := 0
		for i := range before {
			if h.Proxy(i).Stats().Passed.Outbound-before[i] >= events {
				carrier = i
			}
		}
		interrupted := len(p.interruptions())
		h.Proxy(carrier).Drop(etcdtest.BothWays)
		shows(fmt.Sprint("dropped", attempt))
		met := h.Proxy(carrier).Stats().Dropped.Outbound > 0 && len(p.interruptions()) > interrupted
		if met {
			require.ErrorIs(t, p.interruptions()[interrupted], eldest.ErrUnavailable)
		} else {
			h.Proxy(carrier).Mend()
		}
		return met
	}
	for attempt := 0; !swallowed(attempt); attempt++ {
		require.Less(t, attempt, 10, "the fault was not met")
	}

	// The snapshot may have been read before the next watch was in place, which interrupts that watch
	// once more. Once the watch is in place, it is not interrupted any more.
	undisturbed := func(i int) bool {
		before := len(p.interruptions())
		shows(fmt.Sprint("y", i))
		time.Sleep(4 * s.WatchCheck)
		return len(p.interruptions()) == before
	}
	for i := 0; !undisturbed(i); i++ {
		require.Less(t, i, 10, "interrupted again and again: %v", p.interruptions())
	}
}

// TestUnderFaults: under faults of the members and the network, a follower of a range misses no change,
// a life that has not ended is not reported as ended, and its end is reported.
func TestUnderFaults(t *testing.T) {
	for name, of := range map[string]func(clientv3.Watcher) clientv3.Watcher{
		"plain":   func(w clientv3.Watcher) clientv3.Watcher { return w },
		"wrapped": func(w clientv3.Watcher) clientv3.Watcher { return &struct{ clientv3.Watcher }{w} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond})
			writer := c.Client(t)
			h := c.Host(t)
			s := wary(h.Client(t))
			s.Watcher = of(s.Watcher)
			again := func(do func(ctx context.Context) error) {
				t.Helper()
				etcdtest.Eventually(t, func() bool { return do(etcdtest.ContextFor(t, time.Second)) == nil }, "an answer")
			}
			created := func(key string) (life watch.Life) {
				again(func(ctx context.Context) error {
					if _, err := writer.Put(ctx, key, "v"); err != nil {
						return err
					}
					resp, err := writer.Get(ctx, key)
					if err == nil {
						life = watch.Life{Key: key, Token: eldest.Token(resp.Kvs[0].CreateRevision), Known: resp.Header.Revision}
					}
					return err
				})
				return life
			}
			watched := func(life watch.Life) <-chan outcome {
				return start(func() outcome { return gone(etcdtest.Context(t), s, life) })
			}
			remove := func(life watch.Life) {
				again(func(ctx context.Context) error { _, err := writer.Delete(ctx, life.Key); return err })
			}
			prefix := etcdtest.Election(t) + "/"
			p := follow(t, s, prefix)
			shows := func() { // what etcd has: requests that were given up may be carried out late
				t.Helper()
				etcdtest.Eventually(t, func() bool {
					resp, err := writer.Get(etcdtest.ContextFor(t, time.Second), prefix, clientv3.WithPrefix())
					if err != nil {
						return false
					}
					want := map[string]string{}
					for _, kv := range resp.Kvs {
						want[string(kv.Key)] = string(kv.Value)
					}
					p.mu.Lock()
					defer p.mu.Unlock()
					return maps.Equal(p.kvs, want)
				}, "the keys that exist")
			}
			lasting := created(prefix + "lasts")
			lasts := watched(lasting)
			for i := range c.Size() {
				for name, fault := range map[string]struct{ put, undo func() error }{
					"restarted": {c.Member(i).Kill, func() error { return c.Member(i).Restart(etcdtest.Context(t)) }},
					"swallowed": {
						func() error { h.Proxy(i).Drop(etcdtest.BothWays); return nil },
						func() error { h.Proxy(i).Mend(); return nil },
					},
					"cut": {func() error { return c.Cut(i) }, func() error { return c.Mend(i) }},
				} {
					life := created(fmt.Sprint(prefix, name, i))
					ends := watched(life)
					require.NoError(t, fault.put())
					remove(life)
					got := <-ends
					require.NoError(t, got.err, name)
					require.Greater(t, got.revision, life.Known)
					shows()
					require.NoError(t, fault.undo())
				}
			}
			time.Sleep(2 * s.WatchCheck)
			require.Empty(t, lasts, "it lives")
			remove(lasting)
			require.NoError(t, (<-lasts).err)
			shows()
		})
	}
}
