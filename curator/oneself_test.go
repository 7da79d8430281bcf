package curator

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// A leader that says that it is this very process is not forwarded to: there is a wait
// for one that can be.
func TestNeverForwardedToOneself(t *testing.T) {
	m := run(t, electionOf(t), "n")
	m.becomes(elector.Leading)
	value, err := identity.Protobuf{}.Encode(identity.Identity{
		NodeID: "other", Instance: m.elector.Instance(), Address: m.cfg.Elector.Address, TTL: time.Second,
	})
	require.NoError(t, err)
	key := keys.Candidate(m.cfg.Elector.Election, 0xbad)
	_, err = m.etcd.Put(etcdtest.Context(t), key, string(value))
	require.NoError(t, err)
	m.depose()
	m.becomes(elector.Following)
	itself := func(r *route) bool {
		return r.reason != nil && strings.Contains(r.reason.Error(), "the leader is this node")
	}
	_, err = m.front.router.Reader().NextWhere(etcdtest.Context(t), itself)
	require.NoError(t, err)
	_, err = m.unary(etcdtest.ContextFor(t, 100*time.Millisecond))
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), "%v", err)
	_, err = m.front.router.Reader().NextWhere(etcdtest.Context(t), itself) // as before
	require.NoError(t, err)
	_, err = m.etcd.Delete(etcdtest.Context(t), key)
	require.NoError(t, err)
	_, err = m.unary(etcdtest.Context(t))
	require.NoError(t, err)
}
