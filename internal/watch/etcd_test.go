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

// TestMemberRestartOnEtcd: no write is missed.
func TestMemberRestartOnEtcd(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{})
	cli := c.Client(t)
	target := prefix(t)
	p := follow(t, wary(cli), target)
	for i := range 3 {
		value := fmt.Sprint(i)
		put(t, cli, target.Key+"before", value)
		require.NoError(t, c.Member(0).Kill())
		require.NoError(t, c.Restart(etcdtest.Context(t), 0))
		etcdtest.Reachable(t, cli)
		put(t, cli, target.Key+"after", value)
		p.shows(t, target.Key+"after", value)
		p.shows(t, target.Key+"before", value)
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

	// The snapshot may have been read before the next watch was in place, and that watch may have
	// met the member that does not respond again. Once it is in place, it is not interrupted any
	// more.
	undisturbed := func(i int) bool {
		before := len(p.interruptions())
		value := fmt.Sprint("y", i)
		put(t, writer, target.Key+"a", value)
		p.shows(t, target.Key+"a", value)
		time.Sleep(4 * s.WatchCheck)
		return len(p.interruptions()) == before
	}
	for i := 0; !undisturbed(i); i++ {
		require.Less(t, i, 10, "interrupted again and again: %v", p.interruptions())
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

// eachWay runs a test with each kind of client: a plain one, and one whose Watcher is wrapped.
func eachWay(t *testing.T, test func(t *testing.T, of func(*watch.Source) *watch.Source)) {
	for name, of := range map[string]func(*watch.Source) *watch.Source{
		"plain":   func(s *watch.Source) *watch.Source { return s },
		"wrapped": func(s *watch.Source) *watch.Source { s.Watcher = &struct{ clientv3.Watcher }{s.Watcher}; return s },
	} {
		t.Run(name, func(t *testing.T) { test(t, of) })
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

// TestGoneOnEtcd: a life ends by deletion, by the end of the lease, and by a put from outside.
func TestGoneOnEtcd(t *testing.T) { eachWay(t, goneOnEtcd) }

func goneOnEtcd(t *testing.T, of func(*watch.Source) *watch.Source) {
	cli := etcdtest.Shared(t).Client(t)
	s := of(source(cli))
	for name, end := range map[string]func(key string, lease clientv3.LeaseID) (int64, error){
		"deleted": func(key string, _ clientv3.LeaseID) (int64, error) {
			resp, err := cli.Delete(etcdtest.Context(t), key)
			return resp.Header.Revision, err
		},
		"lease revoked": func(_ string, lease clientv3.LeaseID) (int64, error) {
			resp, err := cli.Revoke(etcdtest.Context(t), lease)
			return resp.Header.Revision, err
		},
		"overwritten": func(key string, _ clientv3.LeaseID) (int64, error) { return put(t, cli, key, "mine"), nil },
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []bool{true, false} {
				lease, err := cli.Grant(etcdtest.Context(t), 60)
				require.NoError(t, err)
				key := fmt.Sprintf("%s/%x", t.Name(), lease.ID)
				token := put(t, cli, key, "v", clientv3.WithLease(lease.ID))
				life := watch.Life{Key: key, Token: eldest.Token(token), Lease: int64(lease.ID)}
				if before {
					life.Known = token // and it ends before the watch begins
				}
				result := make(chan outcome, 1)
				look := func() { result <- gone(etcdtest.Context(t), s, life) }
				if !before {
					go look()
				}
				put(t, cli, key, "w", clientv3.WithLease(lease.ID))
				ended, err := end(key, lease.ID)
				require.NoError(t, err)
				if before {
					look()
				}
				got := <-result
				if name == "overwritten" {
					require.ErrorIs(t, got.err, watch.ErrOverwritten)
					continue
				}
				require.NoError(t, got.err)
				require.GreaterOrEqual(t, got.revision, ended) // greater if the watch began after the end
			}
		})
	}
}

// TestGoneThenCreatedAnew: a new life under the same key is not the old one.
func TestGoneThenCreatedAnew(t *testing.T) { eachWay(t, goneThenCreatedAnew) }

func goneThenCreatedAnew(t *testing.T, of func(*watch.Source) *watch.Source) {
	cli := etcdtest.Shared(t).Client(t)
	s := of(source(cli))
	key := etcdtest.Election(t)
	token := put(t, cli, key, "v")
	_, err := cli.Delete(etcdtest.Context(t), key)
	require.NoError(t, err)
	anew := put(t, cli, key, "v")
	got := gone(etcdtest.Context(t), s, watch.Life{Key: key, Token: eldest.Token(token)})
	require.NoError(t, got.err)
	require.GreaterOrEqual(t, got.revision, anew)

	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	got = gone(ctx, s, watch.Life{Key: key, Token: eldest.Token(anew)})
	require.ErrorIs(t, got.err, context.DeadlineExceeded, "the new one lives")
}

// TestClosedClient: closing the client ends a running watch, and one that begins afterwards.
func TestClosedClient(t *testing.T) {
	t.Parallel()
	eachWay(t, closedClient)
}

func closedClient(t *testing.T, of func(*watch.Source) *watch.Source) {
	cli := etcdtest.Shared(t).Client(t)
	s := of(source(cli))
	key := etcdtest.Election(t)
	token := put(t, cli, key, "v")
	life := watch.Life{Key: key, Token: eldest.Token(token)}
	result := start(func() error { return gone(etcdtest.Context(t), s, life).err })
	put(t, cli, key, "w")
	require.NoError(t, cli.Close())
	for _, err := range []error{<-result, gone(etcdtest.Context(t), s, life).err} {
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
}

// TestGoneUnderFaults: under faults of the members and the network, a life that has not ended is
// not reported as ended, and its end is reported.
func TestGoneUnderFaults(t *testing.T) {
	t.Parallel()
	eachWay(t, goneUnderFaults)
}

func goneUnderFaults(t *testing.T, of func(*watch.Source) *watch.Source) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Heartbeat: 50 * time.Millisecond})
	writer := c.Client(t)
	h := c.Host(t)
	s := of(wary(h.Client(t)))
	again := func(do func(ctx context.Context) error) {
		t.Helper()
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(etcdtest.Context(t), time.Second)
			defer cancel()
			return do(ctx) == nil
		}, etcdtest.Patience, time.Millisecond)
	}
	create := func(key string) (token int64) {
		again(func(ctx context.Context) error {
			if _, err := writer.Put(ctx, key, "v"); err != nil {
				return err
			}
			resp, err := writer.Get(ctx, key)
			if err == nil {
				token = resp.Kvs[0].CreateRevision
			}
			return err
		})
		return token
	}
	for i := range c.Size() {
		for name, fault := range map[string]struct{ put, undo func() error }{
			"restarted": {c.Member(i).Kill, func() error { return c.Member(i).Restart(etcdtest.Context(t)) }},
			"swallowed": {
				func() error { h.Proxy(i).Drop(etcdtest.BothWays); return nil },
				func() error { h.Proxy(i).Mend(); return nil },
			},
			"cut": {func() error { return c.Cut(i) }, func() error { return c.Mend(i) }},
		} {
			key := fmt.Sprint(etcdtest.Election(t), "/", name, i)
			token := create(key)
			ended := start(func() outcome {
				return gone(etcdtest.Context(t), s, watch.Life{Key: key, Token: eldest.Token(token), Known: token})
			})
			kept := start(func() outcome {
				return gone(etcdtest.Context(t), s, watch.Life{Key: key + "/kept", Token: eldest.Token(create(key + "/kept")), Known: token})
			})
			require.NoError(t, fault.put())
			again(func(ctx context.Context) error { _, err := writer.Delete(ctx, key); return err })
			got := <-ended
			require.NoError(t, got.err, name)
			require.Greater(t, got.revision, token)
			require.NoError(t, fault.undo())
			select {
			case o := <-kept:
				require.Fail(t, "it lives", "%s: %+v", name, o)
			case <-time.After(2 * s.WatchCheck):
			}
			again(func(ctx context.Context) error { _, err := writer.Delete(ctx, key+"/kept"); return err })
			require.NoError(t, (<-kept).err)
		}
	}
}
