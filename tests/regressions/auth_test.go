package regressions

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/observe"
)

// tokenLife is how long a token of an etcd user lives without being used.
const tokenLife = 2 * time.Second

// locked is a cluster with authentication, whose user "node" may do what a node of the
// election must, once permit has been called.
type locked struct {
	*etcdtest.Cluster
	root *clientv3.Client
	name string
}

// lock starts one whose tokens live so long; 0: longer than any test.
func lock(t *testing.T, life time.Duration) *locked {
	t.Helper()
	k := &locked{Cluster: etcdtest.Start(t, etcdtest.Config{TokenTTL: life}), name: etcdtest.Election(t)}
	cli, ctx := k.Client(t), etcdtest.Context(t)
	for _, user := range []string{"root", "node"} {
		_, err := cli.UserAdd(ctx, user, "secret")
		require.NoError(t, err)
		_, err = cli.RoleAdd(ctx, user)
		require.NoError(t, err)
		_, err = cli.UserGrantRole(ctx, user, user)
		require.NoError(t, err)
	}
	_, err := cli.AuthEnable(ctx)
	require.NoError(t, err)
	k.root, _ = k.as(t, "root")
	return k
}

// as returns a client of a user, and how often etcd told it that its token is none.
func (k *locked) as(t *testing.T, user string) (*clientv3.Client, *atomic.Int64) {
	t.Helper()
	refused := new(atomic.Int64)
	return k.Client(t, func(cfg *clientv3.Config) {
		cfg.Username, cfg.Password = user, "secret"
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				err := invoke(ctx, method, req, reply, cc, opts...)
				if errors.Is(rpctypes.Error(err), rpctypes.ErrInvalidAuthToken) {
					refused.Add(1)
				}
				return err
			}))
	}), refused
}

// permit lets nodes stand, and a leader write its one key.
func (k *locked) permit(t *testing.T) {
	t.Helper()
	begin, end := keys.Range(k.name)
	for from, to := range map[string]string{begin: end, "of-" + k.name: ""} {
		_, err := k.root.RoleGrantPermission(etcdtest.Context(t), "node", from, to, clientv3.PermissionType(clientv3.PermReadWrite))
		require.NoError(t, err)
	}
}

func (k *locked) forbid(t *testing.T) {
	t.Helper()
	begin, end := keys.Range(k.name)
	_, err := k.root.RoleRevokePermission(etcdtest.Context(t), "node", begin, end)
	require.NoError(t, err)
}

func (k *locked) queue(t *testing.T) int {
	t.Helper()
	queue, err := observe.Queue(etcdtest.Context(t), k.root, nil, k.name)
	require.NoError(t, err)
	return len(queue)
}

// silent sends nothing while it waits, so that nothing prolongs its token.
func silent(cfg *elector.Config) {
	cfg.Session.TTL = 10 * time.Minute
	cfg.Candidate.Timeout = 5 * time.Second // checking a password is made to take its time
	cfg.Candidate.Recheck, cfg.Observer.Recheck = -1, -1
}

// Row 25 (etcd #17623). The token expires while the node is queued. Elsewhere the wait
// ends, or goes on for ever: the stream of its watches was opened with the old token,
// and none can be added to it. Here the token is renewed: the last of three waits for
// the first one when the second one leaves, and leads when that one leaves too.
//
// Fails when a watch that is refused for its stream's token is asked for again on the
// same stream.
func TestRegression25_TokenExpiresWhileQueued(t *testing.T) {
	t.Parallel()
	k := lock(t, tokenLife)
	k.permit(t)
	var nodes []*node
	var refused []*atomic.Int64
	for i := range 3 {
		cli, r := k.as(t, "node")
		nodes, refused = append(nodes, stand(t, cli, k.name, "n"+itoa(i), untilTheEnd, silent)), append(refused, r)
		oneLeads(t, nodes)
	}
	first := etcdtest.Take(t, nodes[0].won, "the first tenure")
	expired := func() {
		time.Sleep(tokenLife + 3*time.Second) // the fault itself; etcd looks for expired tokens once a second
	}
	expired()
	_ = nodes[1].end(t)
	etcdtest.Eventually(t, func() bool { return k.queue(t) == 2 }, "the second one has left")
	time.Sleep(5 * time.Second) // longer than a refusal may last before the wait ends with it
	_ = nodes[0].end(t)
	l := etcdtest.Take(t, nodes[2].won, "the win of the last one")
	require.Greater(t, l.Token(), first.Token())
	require.EqualValues(t, 1, nodes[2].rounds.Load(), "it lost its place on the way")
	for i, r := range refused {
		require.Positive(t, r.Load(), "INVALID: the token of n%d never expired", i)
	}
	// And the leader's: what it writes, and its farewell.
	expired()
	_, err := l.KV().Put(etcdtest.Context(t), "of-"+k.name, "")
	require.NoError(t, err)
	require.ErrorIs(t, nodes[2].end(t), context.Canceled)
	require.Zero(t, k.queue(t))
}

// Row 25, permission denied. Elsewhere the loop spins, or gives up in silence. Here the
// status says why, the rounds are held apart, no lease is left by any of them, and the
// node stands when it may.
//
// Fails when a refusal is taken for an outage, or a round for the last one.
func TestRegression25_PermissionDenied(t *testing.T) {
	t.Parallel()
	k := lock(t, 0)
	cli, _ := k.as(t, "node")
	denied := func(s elector.Status) bool { return errors.Is(s.Reason(), rpctypes.ErrPermissionDenied) }
	n := stand(t, cli, k.name, "n", untilTheEnd)
	begin := time.Now()
	n.until(t, "denied", denied)
	require.Less(t, time.Since(begin), atOnce)
	etcdtest.Eventually(t, func() bool { return n.rounds.Load() >= 3 }, "it tries again")
	require.Zero(t, n.calls.Load())
	k.permit(t)
	l := etcdtest.Take(t, n.won, "the win once it may")
	leases, err := k.root.Leases(etcdtest.Context(t))
	require.NoError(t, err)
	require.Len(t, leases.Leases, 1, "the lease of a round is left")

	// The permission is taken away from a leader, which loses its key beside; then it is
	// given back.
	rounds := n.rounds.Load()
	k.forbid(t)
	_, err = l.KV().Put(etcdtest.Context(t), "of-"+k.name, "")
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
	_, err = k.root.Delete(etcdtest.Context(t), l.Key())
	require.NoError(t, err)
	n.until(t, "denied", denied)
	require.Less(t, n.rounds.Load()-rounds, int64(10))
	k.permit(t)
	require.Greater(t, etcdtest.Take(t, n.won, "the next win").Token(), l.Token())
}
