package wiretap_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// gated returns a stage whose gate asks a function about the messages that match; all others pass.
func gated(t *testing.T, matches func(wiretap.Message) bool, gate func(context.Context, wiretap.Message) bool) *stage {
	t.Helper()
	return newStage(t, func(cfg *wiretap.Config) {
		cfg.Gate = func(ctx context.Context, m wiretap.Message) bool { return !matches(m) || gate(ctx, m) }
	})
}

func isPut(m wiretap.Message) bool {
	_, ok := m.Body.(*etcdserverpb.PutRequest)
	return ok
}

func isPutAnswer(m wiretap.Message) bool {
	_, ok := m.Body.(*etcdserverpb.PutResponse)
	return ok
}

func hasEvents(m wiretap.Message) bool {
	r, ok := m.Body.(*etcdserverpb.WatchResponse)
	return ok && len(r.Events) > 0
}

// until returns a gate that reports each message to held, and passes it on when release is closed.
func until(release <-chan struct{}, held func(wiretap.Message)) func(context.Context, wiretap.Message) bool {
	return func(ctx context.Context, m wiretap.Message) bool {
		held(m)
		select {
		case <-release:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// value returns the value of a key, by a client that the gate does not delay.
func (s *stage) value(key string) string {
	s.Helper()
	got, err := s.client("reader").Get(s.ctx, key)
	require.NoError(s, err)
	if len(got.Kvs) == 0 {
		return ""
	}
	return string(got.Kvs[0].Value)
}

// put writes a key in the background.
func (s *stage) put(ctx context.Context, lane, key, value string) <-chan error {
	c := s.client(lane)
	given := make(chan error, 1)
	go func() {
		_, err := c.Put(ctx, key, value)
		given <- err
	}()
	return given
}

// A request that is held reaches etcd when it is released, and others do not wait for it.
func TestGateHolds(t *testing.T) {
	held, release := make(chan wiretap.Message, 1), make(chan struct{})
	s := gated(t, func(m wiretap.Message) bool { return isPut(m) && m.Lane == "anna" }, until(release, func(m wiretap.Message) { held <- m }))
	given := s.put(s.ctx, "anna", "k", "v")
	m := <-held
	require.Equal(t, wiretap.Request, m.Kind)
	require.NoError(t, <-s.put(s.ctx, "bert", "other", "w"))
	require.Empty(t, s.value("k"))
	close(release)
	require.NoError(t, <-given)
	require.Equal(t, "v", s.value("k"))
	numbers := int64(0)
	for _, said := range s.said() {
		numbers++
		require.Equal(t, numbers, said.Number)
		if isPut(said) && said.Lane == "anna" {
			require.Equal(t, m.Number, said.Number)
		}
	}
}

// A request that is dropped is not carried out, one whose reply is dropped is, and the client cannot
// tell the two apart.
func TestGateDrops(t *testing.T) {
	for name, c := range map[string]struct {
		matches func(wiretap.Message) bool
		want    string
	}{
		"a request": {isPut, ""},
		"a reply":   {isPutAnswer, "v"},
	} {
		t.Run(name, func(t *testing.T) {
			s := gated(t, c.matches, func(context.Context, wiretap.Message) bool { return false })
			require.Equal(t, codes.Unavailable, status.Code(<-s.put(s.ctx, "anna", "k", "v")))
			require.Equal(t, c.want, s.value("k"))
			end := s.eventually(func(m wiretap.Message) bool { return m.Kind == wiretap.End && m.Lane == "anna" })
			require.Equal(t, codes.Unavailable, end.Status.Code())
		})
	}
}

// The error with which etcd ends a call passes the gate as well.
func TestGateDropsAnError(t *testing.T) {
	s := gated(t, func(m wiretap.Message) bool { return m.Kind == wiretap.End }, func(ctx context.Context, _ wiretap.Message) bool { return ctx.Err() != nil })
	_, err := s.client("anna").Put(s.ctx, "k", "v", clientv3.WithLease(7))
	require.Equal(t, codes.Unavailable, status.Code(err))
	end := s.eventually(func(m wiretap.Message) bool { return m.Kind == wiretap.End })
	require.Equal(t, codes.NotFound, end.Status.Code(), "what etcd has answered")
}

// The messages of one direction of a call keep their order, however long one of them is held. Those
// that follow it are recorded meanwhile.
func TestGateKeepsTheOrder(t *testing.T) {
	const events = 5
	var once sync.Once
	held, release := make(chan struct{}), make(chan struct{})
	s := gated(t, hasEvents, until(release, func(wiretap.Message) { once.Do(func() { close(held) }) }))
	watched := s.client("anna").Watch(s.ctx, "k", clientv3.WithCreatedNotify())
	<-watched
	for i := range events {
		require.NoError(t, <-s.put(s.ctx, "bert", "k", fmt.Sprint(i)))
	}
	<-held
	require.Eventually(t, func() bool {
		told := 0
		for _, m := range s.said() {
			if r, ok := m.Body.(*etcdserverpb.WatchResponse); ok {
				told += len(r.Events)
			}
		}
		return told == events
	}, patience, 5*time.Millisecond)
	require.Empty(t, watched)
	close(release)
	for i := 0; i < events; {
		for _, e := range (<-watched).Events {
			require.Equal(t, fmt.Sprint(i), string(e.Kv.Value))
			i++
		}
	}
}

// What follows a message that is dropped is lost as well, and the gate is called with all of it.
func TestGateDropsWhatFollows(t *testing.T) {
	decided := make(chan bool)
	asked := make(chan wiretap.Message, 100)
	s := gated(t, hasEvents, func(_ context.Context, m wiretap.Message) bool {
		asked <- m
		return <-decided
	})
	t.Cleanup(func() { close(decided) })
	watched := s.client("anna").Watch(s.ctx, "k", clientv3.WithCreatedNotify())
	<-watched
	for i := range 2 {
		require.NoError(t, <-s.put(s.ctx, "bert", "k", fmt.Sprint(i)))
	}
	s.eventually(func(m wiretap.Message) bool {
		r, ok := m.Body.(*etcdserverpb.WatchResponse)
		return ok && hasEvents(m) && string(r.Events[len(r.Events)-1].Kv.Value) == "1"
	})
	first := (<-asked).Call
	decided <- false
	var next wiretap.Message
	for next = <-asked; next.Call == first; next = <-asked {
		decided <- true
	}
	// The client makes a new watch, which begins with the first event.
	require.Equal(t, "0", string(next.Body.(*etcdserverpb.WatchResponse).Events[0].Kv.Value))
	decided <- true
	require.Equal(t, "0", string((<-watched).Events[0].Kv.Value))
}

// What the gate holds ends with its call, and with the proxy.
func TestGateEndsWithTheCall(t *testing.T) {
	held := make(chan struct{}, 2)
	s := gated(t, isPut, until(nil, func(wiretap.Message) { held <- struct{}{} }))
	short, cancel := context.WithCancel(s.ctx)
	given := s.put(short, "anna", "k", "v")
	<-held
	cancel()
	require.ErrorIs(t, <-given, context.Canceled)
	given = s.put(s.ctx, "anna", "k", "v")
	<-held
	s.tap.Close()
	require.Error(t, <-given)
}
