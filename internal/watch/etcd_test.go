package watch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/watch"
)

// source returns a Source on real etcd whose time-outs a busy machine does not exceed.
func source(cli *clientv3.Client) *watch.Source {
	return &watch.Source{KV: cli, Watcher: cli, Backoff: retry.Default(), Timeout: etcdtest.Patience / 4, WatchCheck: etcdtest.Patience / 4}
}

// wary returns a Source with short time-outs: etcd counts as unavailable soon, and sometimes
// wrongly.
func wary(cli *clientv3.Client) *watch.Source {
	s := source(cli)
	s.Timeout, s.WatchCheck = 300*time.Millisecond, 300*time.Millisecond
	return s
}

func put(t *testing.T, cli *clientv3.Client, key, value string, opts ...clientv3.OpOption) int64 {
	t.Helper()
	resp, err := cli.Put(etcdtest.Context(t), key, value, opts...)
	require.NoError(t, err)
	return resp.Header.Revision
}

func prefix(t *testing.T) watch.Target {
	key := etcdtest.Election(t) + "/"
	return watch.Target{Key: key, End: clientv3.GetPrefixRangeEnd(key)}
}

// TestFollowUnderWrites: snapshot and changes together equal the store, while writers write from
// before the start.
func TestFollowUnderWrites(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	target := prefix(t)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 100 {
				key := fmt.Sprintf("%s%d-%d", target.Key, w, i%7)
				var err error
				if i%5 == 4 {
					_, err = cli.Delete(etcdtest.Context(t), key)
				} else {
					_, err = cli.Txn(etcdtest.Context(t)).Then(
						clientv3.OpPut(key, fmt.Sprint(i)), clientv3.OpPut(key+"x", fmt.Sprint(i))).Commit()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	var pictures []*picture
	s := source(cli)
	for range 3 {
		pictures = append(pictures, follow(t, s, target))
	}
	writers.Wait()
	last := put(t, cli, target.Key+"last", "1")
	resp, err := cli.Get(etcdtest.Context(t), target.Key, clientv3.WithPrefix())
	require.NoError(t, err)
	store := make(map[string]string)
	for _, kv := range resp.Kvs {
		store[string(kv.Key)] = string(kv.Value)
	}
	for _, p := range pictures {
		p.until(t, "the last write", func() bool { return p.revision >= last })
		require.Equal(t, store, p.kvs)
		require.Equal(t, 1, p.snapshots)
		require.Empty(t, p.interrupted)
	}
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
	target := prefix(t)
	p := follow(t, s, target)
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
			value := fmt.Sprint("x", attempt, i)
			put(t, writer, target.Key+"a", value)
			p.shows(t, target.Key+"a", value)
		}
		carrier := 0
		for i := range before {
			if h.Proxy(i).Stats().Passed.Outbound-before[i] >= events {
				carrier = i
			}
		}
		interrupted := len(p.interruptions())
		h.Proxy(carrier).Drop(etcdtest.BothWays)
		value := fmt.Sprint("dropped", attempt)
		put(t, writer, target.Key+"a", value)
		p.shows(t, target.Key+"a", value)
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
}

// TestMemberWithoutLeader: a partitioned member reports that it has no leader, and the watch moves
// to another member.
func TestMemberWithoutLeader(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	writer := c.Client(t)
	s := wary(c.Client(t))
	target := prefix(t)
	p := follow(t, s, target)
	for i := range c.Size() {
		require.NoError(t, c.Cut(i))
		value := fmt.Sprint(i)
		require.Eventually(t, func() bool {
			_, err := writer.Put(etcdtest.ContextFor(t, 500*time.Millisecond), target.Key+"a", value)
			return err == nil
		}, etcdtest.Patience, time.Millisecond)
		p.shows(t, target.Key+"a", value)
		require.NoError(t, c.Mend(i))
		_, err := c.Leader(etcdtest.Context(t))
		require.NoError(t, err)
	}
}

// outcome is what Gone returned.
type outcome struct {
	revision int64
	err      error
}

func gone(ctx context.Context, s *watch.Source, l watch.Life) outcome {
	revision, err := s.Gone(ctx, l)
	return outcome{revision, err}
}

// TestGoneUnderFaults: under faults of the members and the network, a life that has not ended is
// not reported as ended, and its end is reported.
func TestGoneUnderFaults(t *testing.T) {
	for name, of := range map[string]func(*watch.Source) *watch.Source{
		"plain":   func(s *watch.Source) *watch.Source { return s },
		"wrapped": func(s *watch.Source) *watch.Source { s.Watcher = &struct{ clientv3.Watcher }{s.Watcher}; return s },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond})
			writer := c.Client(t)
			h := c.Host(t)
			s := of(wary(h.Client(t)))
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
			lasting := created(etcdtest.Election(t))
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
					life := created(etcdtest.Election(t))
					ends := watched(life)
					require.NoError(t, fault.put())
					remove(life)
					got := <-ends
					require.NoError(t, got.err, name)
					require.Greater(t, got.revision, life.Known)
					require.NoError(t, fault.undo())
				}
			}
			time.Sleep(2 * s.WatchCheck)
			require.Empty(t, lasts, "it lives")
			remove(lasting)
			require.NoError(t, (<-lasts).err)
		})
	}
}
