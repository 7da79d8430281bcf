package curator

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// run starts a node in a real election. It serves its ID and its token, and is stopped with the
// test.
func run(t testing.TB, election, id string, change ...func(*Config)) *member {
	t.Helper()
	m := &member{node: &node{t: t}, etcd: etcdtest.Shared(t).Client(t), done: make(chan error, 1)}
	cfg := Config{
		Elector: elector.Config{
			Election: election, NodeID: id, Source: elector.Always(elector.Client(m.etcd)),
			Session: lease.Options{TTL: time.Minute}, // on a busy machine no node loses its lease
			Backoff: func(int) time.Duration { return 10 * time.Millisecond },
		},
		Listeners: []Listener{{Listener: listen(t)}}, Wait: etcdtest.Patience,
		Services: serving(func(l *elector.Leadership) *script {
			return &script{unary: func(context.Context, *message) (*message, error) {
				return wrapperspb.Bytes([]byte(fmt.Sprintf("%s %d", id, l.Token()))), nil
			}, stream: echoes}
		}),
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	m.Curator, err = New(cfg)
	require.NoError(t, err)
	m.address = m.cfg.Elector.Address
	m.conn = dialTo(t, m.address)
	ctx, stop := context.WithCancelCause(context.Background())
	m.stop = stop
	go func() { m.done <- m.Run(ctx) }()
	t.Cleanup(func() { _ = m.end(nil) })
	return m
}

// serving makes Config.Services of a script for each tenure.
func serving(s func(l *elector.Leadership) *script) func(context.Context, *elector.Leadership, grpc.ServiceRegistrar) error {
	return func(_ context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
		r.RegisterService(describe("test.Script"), s(l))
		return nil
	}
}

// member is a node in a real election.
type member struct {
	*node
	etcd *clientv3.Client
	stop context.CancelCauseFunc
	done chan error
}

// end stops the member and returns what Run returned.
func (m *member) end(cause error) error {
	m.t.Helper()
	m.stop(cause)
	err := etcdtest.Take(m.t, m.done, "the end of Run")
	m.done <- err
	return err
}

// is waits for a status that want accepts.
func (m *member) is(want func(elector.Status) bool) elector.Status {
	m.t.Helper()
	s, err := m.Watch().NextWhere(etcdtest.Context(m.t), want)
	require.NoError(m.t, err, "%s is %v", m.cfg.Elector.NodeID, m.Status())
	return s
}

func (m *member) becomes(role elector.Role) elector.Status {
	m.t.Helper()
	return m.is(func(s elector.Status) bool { return s.Role() == role })
}

// leadsAfter waits for a tenure later than one, and returns its token.
func (m *member) leadsAfter(token eldest.Token) eldest.Token {
	m.t.Helper()
	_, next, _ := m.is(func(s elector.Status) bool { _, next, ok := s.Own(); return ok && next > token }).Own()
	return next
}

// depose deletes the key of a member that leads.
func (m *member) depose() {
	m.t.Helper()
	key, _, _ := m.becomes(elector.Leading).Own()
	_, err := m.etcd.Delete(etcdtest.Context(m.t), key)
	require.NoError(m.t, err)
}
