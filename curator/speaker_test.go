package curator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

var elections atomic.Int64

// electionOf is an election of the test's own, also when the test runs again.
func electionOf(t testing.TB) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), elections.Add(1))
}

// speaker is a node that stands in a real election and answers questions on who leads
// on a real server, and nothing else.
type speaker struct {
	*elector.Elector
	etcd   *clientv3.Client
	cfg    elector.Config
	server *grpc.Server
	conn   *grpc.ClientConn
	// stopping ends the life of the node, as a curator does before it stops its server.
	stopping context.CancelFunc
	life     life
}

// newSpeaker starts a speaker's server; its elector runs once stand is called.
func newSpeaker(t testing.TB, election, id string, change ...func(*elector.Config)) *speaker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &speaker{etcd: etcdtest.Shared(t).Client(t), server: grpc.NewServer()}
	p.cfg = elector.Config{
		Election: election, NodeID: id, Address: listener.Addr().String(), Source: elector.Always(elector.Client(p.etcd)),
		Session: lease.Config{TTL: time.Minute}, // a busy machine costs nobody the lease
		Backoff: func(int) time.Duration { return 10 * time.Millisecond },
	}
	for _, f := range change {
		f(&p.cfg)
	}
	p.Elector, err = elector.New(p.cfg)
	require.NoError(t, err)
	ctx, stopping := context.WithCancel(context.Background())
	p.stopping = stopping
	announce(ctx, p.server, p.me(), p)
	var routes routing.Board[*route]
	routes.Set(&route{reason: errStopped})
	p.life = life{ctx}
	registerHealth(ctx, p.server, p, &routes)
	served := make(chan error, 1)
	go func() { served <- p.server.Serve(listener) }()
	p.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		stopping()
		require.NoError(t, p.conn.Close())
		p.server.Stop()
		if err := <-served; !errors.Is(err, grpc.ErrServerStopped) { // it had hardly begun
			require.NoError(t, err)
		}
	})
	return p
}

func (p *speaker) me() self {
	return self{election: p.cfg.Election, node: p.cfg.NodeID, instance: p.Instance(), address: p.cfg.Address}
}

// stand has the speaker stand until the test ends or its elector is told to stop.
func (p *speaker) stand(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(ctx, func(ctx context.Context, _ *elector.Leadership) error {
			<-ctx.Done()
			return nil
		})
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// becomes waits for a role.
func (p *speaker) becomes(t testing.TB, role elector.Role) elector.Status {
	t.Helper()
	s, err := p.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool { return s.Role() == role })
	require.NoError(t, err, "%s is not %v: %v", p.cfg.NodeID, role, p.Status())
	return s
}

// depose deletes the key of a speaker that leads.
func (p *speaker) depose(t testing.TB) {
	t.Helper()
	key, _, ok := p.becomes(t, elector.Leading).Own()
	require.True(t, ok)
	_, err := p.etcd.Delete(etcdtest.Context(t), key)
	require.NoError(t, err)
}

// stranger has a key in the election that no program of ours wrote, in front of all
// that stand after it.
func (p *speaker) stranger(t testing.TB, value []byte) (token int64) {
	t.Helper()
	key := keys.Candidate(p.cfg.Election, 0xbad)
	resp, err := p.etcd.Put(etcdtest.Context(t), key, string(value))
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = p.etcd.Delete(etcdtest.Context(t), key) })
	return resp.Header.Revision
}

// ask opens a stream of who leads.
func (p *speaker) ask(t testing.TB, ctx context.Context) *leaders { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	stream, err := curatorpb.NewCuratorClient(p.conn).CurrentLeader(ctx, &curatorpb.CurrentLeaderRequest{})
	require.NoError(t, err)
	return &leaders{t: t, stream: stream}
}

func (p *speaker) health() healthpb.HealthClient { return healthpb.NewHealthClient(p.conn) }

// role asks the HTTP handler.
func (p *speaker) role(want elector.Role, method string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	roleHandler{want: want, me: p.me(), life: p.life, statuses: p}.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
	return w
}

// named is a codec that takes any value for a node's name, as a user's might.
type named struct{}

func (named) Encode(id identity.Identity) ([]byte, error) { return []byte(id.NodeID), nil }

func (named) Decode(value []byte) (identity.Identity, error) {
	return identity.Identity{NodeID: string(value), Address: "192.0.2.1:1"}, nil
}
