package wiretap_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// patience bounds what a test waits for, on an overloaded machine.
const patience = time.Minute

// stage is an etcd with a wiretap in front of it.
type stage struct {
	*testing.T
	ctx  context.Context
	etcd *devcluster.Cluster
	tap  *wiretap.Proxy

	mu       sync.Mutex
	messages []wiretap.Message
	cut      string // the lane whose messages are lost
}

func newStage(t *testing.T, change ...func(*wiretap.Config)) *stage {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s := &stage{T: t, ctx: ctx}
	var err error
	s.etcd, err = devcluster.Start(ctx, devcluster.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.etcd.Close()) })
	cfg := wiretap.Config{Endpoints: s.etcd.Endpoints(), Record: func(m *wiretap.Message) {
		s.mu.Lock()
		defer s.mu.Unlock()
		m.Lost = m.Kind != wiretap.End && m.Lane == s.cut
		s.messages = append(s.messages, *m)
	}}
	for _, f := range change {
		f(&cfg)
	}
	s.tap, err = wiretap.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(s.tap.Close)
	return s
}

// client connects to etcd through the wiretap, with a name; "" means none.
func (s *stage) client(lane string, change ...func(*clientv3.Config)) *clientv3.Client {
	s.Helper()
	cfg := clientv3.Config{Endpoints: []string{s.tap.Endpoint()}, Logger: zap.NewNop(), Context: s.ctx}
	if lane != "" {
		cfg.DialOptions = []grpc.DialOption{grpc.WithUserAgent(lane)}
	}
	for _, f := range change {
		f(&cfg)
	}
	c, err := clientv3.New(cfg)
	require.NoError(s, err)
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// said returns the messages so far.
func (s *stage) said() []wiretap.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// eventually waits for a message that matches, and returns it.
func (s *stage) eventually(matches func(wiretap.Message) bool) wiretap.Message {
	s.Helper()
	var found wiretap.Message
	require.Eventually(s, func() bool {
		i := slices.IndexFunc(s.said(), matches)
		if i >= 0 {
			found = s.said()[i]
		}
		return i >= 0
	}, patience, 5*time.Millisecond)
	return found
}
