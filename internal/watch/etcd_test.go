package watch_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

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

// present follows the keys with a prefix until the test ends, and returns a function that returns them.
func present(t *testing.T, s *watch.Source, prefix string) func() []string {
	t.Helper()
	var mu sync.Mutex
	there := make(map[string]bool)
	ctx, cancel := context.WithCancel(context.Background())
	result := start(func() error {
		return s.Follow(ctx, watch.Target{
			Key: prefix, End: clientv3.GetPrefixRangeEnd(prefix),
			Snapshot: func(resp *clientv3.GetResponse) bool {
				mu.Lock()
				defer mu.Unlock()
				clear(there)
				for _, kv := range resp.Kvs {
					there[string(kv.Key)] = true
				}
				return false
			},
			Change: func(_ int64, events []*clientv3.Event) bool {
				mu.Lock()
				defer mu.Unlock()
				for _, e := range events {
					if there[string(e.Kv.Key)] = true; e.Type == mvccpb.DELETE {
						delete(there, string(e.Kv.Key))
					}
				}
				return false
			},
		})
	})
	t.Cleanup(func() { cancel(); require.ErrorIs(t, <-result, context.Canceled) })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(maps.Keys(there))
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
			cli := h.Client(t)
			// With time-outs so short etcd counts as unavailable soon, and sometimes wrongly.
			s := &watch.Source{
				KV: cli, Watcher: of(cli), Backoff: retry.Default(), Timeout: 300 * time.Millisecond, WatchCheck: 300 * time.Millisecond,
			}
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
			keys := present(t, s, prefix)
			shows := func() { // what etcd has: requests that were given up may be carried out late
				t.Helper()
				etcdtest.Eventually(t, func() bool {
					resp, err := writer.Get(etcdtest.ContextFor(t, time.Second), prefix, clientv3.WithPrefix())
					if err != nil {
						return false
					}
					var want []string
					for _, kv := range resp.Kvs {
						want = append(want, string(kv.Key))
					}
					return slices.Equal(keys(), want)
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
