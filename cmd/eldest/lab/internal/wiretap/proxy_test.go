package wiretap_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// A request and its answer are recorded, in this order, with the client's name.
func TestUnary(t *testing.T) {
	s := newStage(t)
	c := s.client("anna")
	_, err := c.Put(s.ctx, "k", "v")
	require.NoError(t, err)
	got, err := c.Get(s.ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "v", string(got.Kvs[0].Value))

	said := s.said()
	require.Len(t, said, 4)
	for i, m := range said {
		require.Equal(t, "anna", m.Lane)
		require.Equal(t, 1, m.Connection)
		require.Equal(t, 1+i/2, m.Call)
		require.Equal(t, []wiretap.Kind{wiretap.Request, wiretap.Answer}[i%2], m.Kind)
		require.False(t, m.Stream)
	}
	require.Equal(t, "k", string(said[0].Body.(*etcdserverpb.PutRequest).Key))
	require.EqualValues(t, 2, said[1].Body.(*etcdserverpb.PutResponse).Header.Revision)
	require.LessOrEqual(t, said[0].At, said[1].At)
}

// An error of etcd reaches the client unchanged, and is recorded once.
func TestErrors(t *testing.T) {
	s := newStage(t)
	c := s.client("anna")
	_, err := c.Put(s.ctx, "k", "v", clientv3.WithLease(7))
	require.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
	require.Len(t, s.said(), 2)
	end := s.said()[1]
	require.Equal(t, wiretap.End, end.Kind)
	require.Equal(t, codes.NotFound, end.Status.Code())
	short, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err = c.Get(short, "k")
	require.ErrorIs(t, err, context.Canceled)
}

// Events, cancels and the end of a stream pass, and are recorded before they are passed on.
func TestWatch(t *testing.T) {
	s := newStage(t)
	c, other := s.client("anna"), s.client("bert")
	one, cancel := context.WithCancel(s.ctx)
	watched := c.Watch(clientv3.WithRequireLeader(one), "k", clientv3.WithCreatedNotify())
	require.True(t, (<-watched).Created)
	second := c.Watch(clientv3.WithRequireLeader(s.ctx), "l", clientv3.WithCreatedNotify())
	require.True(t, (<-second).Created)
	_, err := other.Put(s.ctx, "k", "v")
	require.NoError(t, err)
	require.Len(t, (<-watched).Events, 1)
	told := 0
	for _, m := range s.said() {
		require.Equal(t, strings.HasSuffix(m.Method, "Watch"), m.Stream)
		require.Equal(t, m.Stream, m.RequireLeader)
		if hasEvents(m) {
			told++
			require.Equal(t, "anna", m.Lane)
		}
	}
	require.Equal(t, 1, told)

	cancel()
	s.eventually(func(m wiretap.Message) bool {
		r, ok := m.Body.(*etcdserverpb.WatchResponse)
		return ok && r.Canceled
	})
	require.NoError(t, c.Close())
	end := s.eventually(func(m wiretap.Message) bool { return m.Kind == wiretap.End })
	require.Equal(t, codes.Canceled, end.Status.Code())
}

// Messages that are recorded as lost do not arrive, from and to their lane, while the call stays open.
// Those of other lanes arrive.
func TestLost(t *testing.T) {
	s := newStage(t)
	anna, bert := s.client("anna"), s.client("bert")
	watched := anna.Watch(s.ctx, "k", clientv3.WithCreatedNotify())
	<-watched
	s.mu.Lock()
	s.cut = "anna"
	s.mu.Unlock()
	lost := func(kind wiretap.Kind) wiretap.Message {
		return s.eventually(func(m wiretap.Message) bool { return m.Lost && m.Kind == kind })
	}
	short, cancel := context.WithCancel(s.ctx)
	defer cancel()
	given := make(chan error, 1)
	go func() {
		_, err := anna.Put(short, "k", "lost")
		given <- err
	}()
	require.Equal(t, "anna", lost(wiretap.Request).Lane)
	require.Empty(t, given, "it waits for an answer that does not come")
	cancel()
	require.Error(t, <-given)
	_, err := bert.Put(s.ctx, "k", "there")
	require.NoError(t, err)
	require.Equal(t, "anna", lost(wiretap.Answer).Lane, "the event")
	got, err := bert.Get(s.ctx, "k")
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Kvs[0].Version, "what was lost arrived")
	require.Empty(t, watched)
}

// Leases are kept alive through the wiretap, and a renewal of a revoked lease fails.
func TestKeepAlive(t *testing.T) {
	s := newStage(t)
	c := s.client("anna")
	granted, err := c.Grant(s.ctx, 60)
	require.NoError(t, err)
	life, cancel := context.WithCancel(s.ctx)
	defer cancel()
	alive, err := c.KeepAlive(life, granted.ID)
	require.NoError(t, err)
	require.EqualValues(t, 60, (<-alive).TTL)
	_, err = c.Revoke(s.ctx, granted.ID)
	require.NoError(t, err)
	_, err = c.KeepAliveOnce(s.ctx, granted.ID)
	require.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
	gone := s.eventually(func(m wiretap.Message) bool {
		r, ok := m.Body.(*etcdserverpb.LeaseKeepAliveResponse)
		return ok && r.TTL == 0
	})
	require.True(t, gone.Stream)
}

// Large messages pass whole in both directions, and etcd refuses those that are too large.
func TestLarge(t *testing.T) {
	s := newStage(t)
	c := s.client("anna", func(cfg *clientv3.Config) { cfg.MaxCallSendMsgSize = 4 << 20 })
	value := strings.Repeat("x", 1<<20)
	for i := range 8 {
		_, err := c.Put(s.ctx, fmt.Sprint("k", i), value)
		require.NoError(t, err)
	}
	got, err := c.Get(s.ctx, "k", clientv3.WithPrefix())
	require.NoError(t, err)
	require.Len(t, got.Kvs, 8)
	for _, kv := range got.Kvs {
		require.Equal(t, value, string(kv.Value))
	}
	_, err = c.Put(s.ctx, "k", strings.Repeat("x", 17<<20/10))
	require.ErrorIs(t, err, rpctypes.ErrRequestTooLarge)
}

// Many concurrent calls on many connections are not mixed up.
func TestConcurrent(t *testing.T) {
	s := newStage(t)
	var wg sync.WaitGroup
	const clients, calls = 4, 50
	for i := range clients {
		c := s.client(fmt.Sprint("lane", i))
		for j := range calls {
			wg.Go(func() {
				k := fmt.Sprintf("lane%d/%d", i, j)
				if _, err := c.Put(s.ctx, k, k); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	said := s.said()
	require.Len(t, said, 2*clients*calls)
	asked := map[int]string{}
	for _, m := range said {
		if r, ok := m.Body.(*etcdserverpb.PutRequest); ok {
			lane, _, _ := strings.Cut(string(r.Key), "/")
			require.Equal(t, lane, m.Lane)
			require.Empty(t, asked[m.Call])
			asked[m.Call] = m.Lane
		} else {
			require.Equal(t, asked[m.Call], m.Lane)
		}
	}
}

// A client without a name is named client, with a new name for each connection.
func TestLanesWithoutNames(t *testing.T) {
	s := newStage(t)
	for range 2 {
		_, err := s.client("").Get(s.ctx, "k")
		require.NoError(t, err)
	}
	require.Equal(t, "client", s.said()[0].Lane)
	require.Equal(t, "client-2", s.said()[2].Lane)
	require.Equal(t, 2, s.said()[2].Connection)
	s.tap.Note("client", "a note")
	require.Equal(t, "a note", s.said()[4].Text)
}

// Clients authenticate through the wiretap, and their credentials are not recorded.
func TestSecrets(t *testing.T) {
	s := newStage(t)
	root := s.client("root")
	_, err := root.RoleAdd(s.ctx, "root")
	require.NoError(t, err)
	_, err = root.UserAdd(s.ctx, "root", "s3cret")
	require.NoError(t, err)
	_, err = root.UserGrantRole(s.ctx, "root", "root")
	require.NoError(t, err)
	_, err = root.AuthEnable(s.ctx)
	require.NoError(t, err)
	_, err = s.client("nobody").Get(s.ctx, "k")
	require.ErrorIs(t, err, rpctypes.ErrUserEmpty)
	c := s.client("anna", func(cfg *clientv3.Config) { cfg.Username, cfg.Password = "root", "s3cret" })
	_, err = c.Get(s.ctx, "k")
	require.NoError(t, err)
	logins := 0
	for _, m := range s.said() {
		if m.Body == nil {
			continue
		}
		text, err := protojson.Marshal(m.Body)
		require.NoError(t, err)
		require.NotContains(t, string(text), "s3cret")
		if r, ok := m.Body.(*etcdserverpb.AuthenticateResponse); ok {
			require.Equal(t, wiretap.Hidden, r.Token)
			logins++
		}
	}
	require.Positive(t, logins)
}

// Close ends the calls, whatever they wait for.
func TestCloseEndsStreams(t *testing.T) {
	s := newStage(t)
	watched := s.client("anna").Watch(s.ctx, "k", clientv3.WithCreatedNotify())
	<-watched
	s.tap.Close()
	said := len(s.said())
	s.tap.Close()
	require.Len(t, s.said(), said, "something was recorded after the end")
}

func TestInvalidEndpoints(t *testing.T) {
	for _, endpoints := range [][]string{nil, {"nowhere"}, {"https://127.0.0.1:1", "http://127.0.0.1:2"}} {
		_, err := wiretap.Start(wiretap.Config{Endpoints: endpoints})
		require.ErrorIs(t, err, wiretap.ErrInvalid)
	}
}
