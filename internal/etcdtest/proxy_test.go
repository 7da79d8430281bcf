package etcdtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// onHost makes a host with a client that is connected, and a key of the test's own.
func onHost(t *testing.T) (*etcdtest.Host, *clientv3.Client, string) {
	t.Helper()
	h := etcdtest.Shared(t).Host(t)
	cli := h.Client(t)
	_, err := cli.Put(etcdtest.Context(t), t.Name(), "0")
	require.NoError(t, err)
	return h, cli, t.Name()
}

// stored reads a key without a proxy.
func stored(t *testing.T, key string) string {
	t.Helper()
	resp, err := etcdtest.Shared(t).Client(t).Get(etcdtest.Context(t), key)
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 1)
	return string(resp.Kvs[0].Value)
}

// eventuallyStored waits until a key has a value.
func eventuallyStored(t *testing.T, key, value string) {
	t.Helper()
	require.Eventually(t, func() bool { return stored(t, key) == value }, etcdtest.Patience, time.Millisecond)
}

func TestProxyDelaysEachDirection(t *testing.T) {
	t.Parallel()
	const late = 400 * time.Millisecond // an operation that a busy machine holds up for as long passes without the delay
	for name, delay := range map[string][2]time.Duration{"inbound": {late, 0}, "outbound": {0, late}, "both": {late, late}} {
		t.Run(name, func(t *testing.T) {
			h, cli, key := onHost(t)
			h.Delay(delay[0], delay[1])
			begin := time.Now()
			_, err := cli.Put(etcdtest.Context(t), key, "1")
			require.NoError(t, err)
			require.GreaterOrEqual(t, time.Since(begin), delay[0]+delay[1])
			st := h.Stats()
			require.Equal(t, delay[0] > 0, st.Delayed.Inbound > 0)
			require.Equal(t, delay[1] > 0, st.Delayed.Outbound > 0)
		})
	}
}

func TestProxyDropsRequests(t *testing.T) {
	t.Parallel()
	h, cli, key := onHost(t)
	h.Drop(etcdtest.Inbound)
	requireTimeout(t, cli, key)
	require.Equal(t, "0", stored(t, key), "the request got through")
	st := h.Stats()
	require.Positive(t, st.Dropped.Inbound)
	require.Zero(t, st.Dropped.Outbound)
	requireMended(t, h, cli, key)
	require.Positive(t, h.Stats().Reset, "a connection with a hole in it lived on")
}

func TestProxyDropsReplies(t *testing.T) {
	t.Parallel()
	h, cli, key := onHost(t)
	h.Drop(etcdtest.Outbound)
	requireTimeout(t, cli, key)
	eventuallyStored(t, key, "lost")
	st := h.Stats()
	require.Positive(t, st.Dropped.Outbound)
	require.Zero(t, st.Dropped.Inbound)
	requireMended(t, h, cli, key)
}

func TestProxyHoldsAndDelivers(t *testing.T) {
	t.Parallel()
	h, cli, key := onHost(t)
	h.Hold(etcdtest.Outbound)
	result := make(chan error, 1)
	go func() {
		_, err := cli.Put(etcdtest.Context(t), key, "held")
		result <- err
	}()
	eventuallyStored(t, key, "held")
	require.Eventually(t, func() bool { return h.Stats().Held.Outbound > 0 }, etcdtest.Patience, time.Millisecond)
	require.Empty(t, result)
	h.Mend()
	require.NoError(t, <-result, "a reply that was held did not arrive")
	require.Zero(t, h.Stats().Reset)
}

func TestProxyResets(t *testing.T) {
	h, cli, key := onHost(t)
	before := h.Stats().Accepted // one, unless the first connection timed out on a busy machine
	reset := h.Reset()
	require.Positive(t, reset)
	require.EqualValues(t, reset, h.Stats().Reset)
	requireMended(t, h, cli, key)
	require.Greater(t, h.Stats().Accepted, before)
}

func TestProxyRefuses(t *testing.T) {
	h, cli, key := onHost(t)
	h.Refuse()
	_, err := cli.Put(etcdtest.Context(t), key, "1")
	require.NoError(t, err, "a connection that existed was touched")
	h.Reset()
	requireTimeout(t, cli, key)
	require.Eventually(t, func() bool { return h.Stats().Refused > 0 }, etcdtest.Patience, time.Millisecond)
	requireMended(t, h, cli, key)
}

func TestHostsAreApart(t *testing.T) {
	h, cli, key := onHost(t)
	other := etcdtest.Shared(t).Host(t)
	otherCli := other.Client(t)
	h.Cut()
	requireTimeout(t, cli, key)
	_, err := otherCli.Put(etcdtest.Context(t), key, "other")
	require.NoError(t, err)
	require.Zero(t, other.Stats().Dropped)
}

func TestSwallowReplyOfMatchingRequest(t *testing.T) {
	h, cli, key := onHost(t)
	s := h.SwallowNextReply(etcdtest.Containing("the-value"))
	_, err := cli.Put(etcdtest.Context(t), key, "another")
	require.NoError(t, err, "the reply of another request was swallowed")

	_, err = cli.Put(etcdtest.Context(t), key, "the-value")
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.NoError(t, s.Wait(etcdtest.Context(t)))
	require.Contains(t, string(s.Request()), "the-value")
	require.Equal(t, "the-value", stored(t, key), "the request itself did not get through")
	st := h.Stats()
	require.EqualValues(t, 1, st.Swallowed)
	require.EqualValues(t, 1, st.Reset)

	_, err = cli.Put(etcdtest.Context(t), key, "the-value")
	require.NoError(t, err, "a second reply was swallowed")
}

func TestSwallowReplyAmongOthers(t *testing.T) {
	h, cli, key := onHost(t)
	ctx := etcdtest.Context(t)
	got, err := cli.Get(ctx, key)
	require.NoError(t, err)
	// A watch on the same connection is reset with it and continues. (It names its revision: a
	// watch from "now" that is reset before its first event receives the last event from before it
	// again.)
	watch := cli.Watch(ctx, key, clientv3.WithCreatedNotify(), clientv3.WithRev(got.Header.Revision+1))
	require.True(t, (<-watch).Created)
	s := h.SwallowNextReply(etcdtest.Containing("swallowed"))
	_, err = cli.Txn(etcdtest.Context(t)).Then(clientv3.OpPut(key, "swallowed")).Commit()
	require.Error(t, err)
	require.NoError(t, s.Wait(etcdtest.Context(t)))
	resp := <-watch
	require.NoError(t, resp.Err())
	require.Equal(t, "swallowed", string(resp.Events[0].Kv.Value))
}

func TestSwallowReplyOfRenewal(t *testing.T) {
	h, cli, _ := onHost(t)
	lease, err := cli.Grant(etcdtest.Context(t), 60)
	require.NoError(t, err)
	s := h.SwallowNextReply(nil)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = cli.KeepAliveOnce(ctx, lease.ID)
	require.NoError(t, s.Wait(etcdtest.Context(t)))
	_ = err // the client repeats a renewal by itself
	require.EqualValues(t, 1, h.Stats().Swallowed)
}

func requireTimeout(t *testing.T, cli *clientv3.Client, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := cli.Put(ctx, key, "lost")
	require.Error(t, err)
}

func requireMended(t *testing.T, h *etcdtest.Host, cli *clientv3.Client, key string) {
	t.Helper()
	h.Mend()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := cli.Put(ctx, key, "mended")
		return err == nil
	}, etcdtest.Patience, time.Millisecond)
}
