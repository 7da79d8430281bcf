package badinput

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// permissionSection: etcd with users; one user may be a candidate in one election and write one
// key.
func permissionSection(t *testing.T) section {
	c := etcdtest.Start(t, etcdtest.Config{})
	root := c.Client(t)
	ctx := context.Background()
	for _, user := range []string{"root", "node"} {
		require.NoError(t, second(root.UserAdd(ctx, user, "secret")))
		require.NoError(t, second(root.RoleAdd(ctx, user)))
		require.NoError(t, second(root.UserGrantRole(ctx, user, user)))
	}
	begin, end := keys.Range("orders")
	for from, to := range map[string]string{begin: end, "data": ""} {
		require.NoError(t, second(root.RoleGrantPermission(ctx, "node", from, to, clientv3.PermissionType(clientv3.PermReadWrite))))
	}
	as := func(user string) func(*clientv3.Config) {
		return func(cfg *clientv3.Config) { cfg.Username, cfg.Password = user, "secret" }
	}
	// A client from before authentication is enabled: etcd gives it a token when it requests one.
	require.NoError(t, second(root.AuthEnable(ctx)))
	st := &stage{Env: &etcdtest.Env{
		T: t, Ctx: etcdtest.ContextFor(t, 4*etcdtest.Patience), Cluster: c, Election: "orders", Rec: &etcdtest.Recorder{},
	}}
	st.Admin, st.Client = c.Client(t, as("root")), c.Client(t, st.Rec.Attach, as("node"))
	session := st.session()
	l := st.leader(st.candidate(session))

	s := st.section("Permission denied", "A user of etcd that may campaign in the election orders and write the key data, and nothing else.")
	s.left = "the session is alive, and the tenure in orders continues, with a guarded write of data"
	s.lives = func(t *testing.T) {
		require.NoError(t, session.Err())
		require.NoError(t, l.Err())
		require.NoError(t, etcdtest.Err(l.KV().Put(st.Ctx, "data", "")))
	}
	outside := func(cfg *election.Config) { cfg.Election = "invoices" }
	c1, c2, c3 := st.candidate(session, outside), st.candidate(st.session(), outside), st.candidate(st.session(), outside)
	denied := func(tried, op, election, key string, sent int, try func() error) {
		s.rows = append(s.rows, row{tried: tried, op: op, election: election, key: key, sent: sent, want: []error{rpctypes.ErrPermissionDenied}, try: try})
	}
	// A key is looked for after a registration whose outcome could be unknown; the outcome of a
	// refusal is known. The pointer is refused first, and then the key.
	denied("`Campaign` in another election", "campaign", "invoices", c1.Key(), 2, func() error { return second(c1.Campaign(st.Ctx)) })
	denied("`Register` in another election", "register", "invoices", c2.Key(), 2, func() error { return second(c2.Register(st.Ctx)) })
	denied("`Try` in another election", "try", "invoices", c3.Key(), 1, func() error { return second(c3.Try(st.Ctx)) })
	denied("`LeaderOf` of another election", "leader", "invoices", "", 1, func() error { return second(observe.LeaderOf(st.Ctx, st.Client, "invoices")) })
	denied("`Queue` of another election", "queue", "invoices", "", 1, func() error { return second(observe.Queue(st.Ctx, st.Client, nil, "invoices")) })
	denied("`Evict` in another election", "evict", "invoices", "invoices/2a", 1, func() error {
		return election.Evict(st.Ctx, st.Client, "invoices", eldest.Candidate{Key: "invoices/2a", Token: 1})
	})
	// The requests are the token of a new stream, the watch, and a read: the member that refuses
	// may not have applied a new permission yet.
	denied("an observer of another election: `Next`", "observe", "invoices", "", 3, func() error {
		o, err := observe.New(observe.Config{Election: "invoices", KV: st.Client, Watcher: st.Client, Options: observe.Options{Timeout: etcdtest.Patience}})
		if err != nil {
			return err
		}
		defer o.Close()
		sub := o.Subscribe()
		for {
			if state, err := sub.Next(st.Ctx); err != nil {
				return err
			} else if state.Kind != eldest.Unknown {
				return fmt.Errorf("it knows: %v", state)
			}
		}
	})
	denied("a guarded write of another key", "guarded operation", "orders", l.Key(), 1, func() error { return second(l.KV().Put(st.Ctx, "other", "")) })
	denied("a guarded read of another key", "guarded operation", "orders", l.Key(), 1, func() error { return second(l.KV().Get(st.Ctx, "other")) })
	return s
}

// spaceSection: etcd without free space. Of the refused writes etcd has applied the one that
// exceeded the quota, so the outcome of all of them is unknown.
func spaceSection(t *testing.T) section {
	c := etcdtest.Start(t, etcdtest.Config{Settings: map[string]any{"quota-backend-bytes": 2 << 20}})
	st := newStage(t, c, "orders")
	session := st.session()
	l := st.leader(st.candidate(session))
	c1, c2 := st.candidate(st.session(), st.variant("late")), st.candidate(st.session(), st.variant("later"))
	waiting := st.candidate(st.session())
	watches := st.watches()
	require.NoError(t, second(waiting.Register(st.Ctx)))
	st.watching(watches + 1) // of its own key; it does not wait yet
	for i := 0; ; i++ {
		_, err := st.Admin.Put(st.Ctx, fmt.Sprint("fill-", i), strings.Repeat("x", 1<<18))
		if err != nil {
			require.ErrorIs(t, err, rpctypes.ErrNoSpace)
			break
		}
	}
	s := st.section("No space", "An etcd whose quota is used up. Its error does not show whether the refused write was the one that exceeded the quota, which is applied.")
	s.left = "the session is alive, and the tenure continues, with a guarded read"
	s.lives = func(t *testing.T) {
		require.NoError(t, session.Err())
		require.NoError(t, l.Err())
		require.NoError(t, etcdtest.Err(l.KV().Get(st.Ctx, "data")))
	}
	full := func(tried, op, election, key string, sent int, try func() error, want ...error) {
		s.rows = append(s.rows, row{tried: tried, op: op, election: election, key: key, sent: sent, want: append(want, rpctypes.ErrNoSpace), try: try})
	}
	full("`lease.Open`", "open session", "", "", 1, func() error { return second(lease.Open(st.Ctx, lease.Config{Lease: st.Client})) })
	full("a guarded write", "guarded operation", st.Election, l.Key(), 1, func() error {
		return second(l.KV().Put(st.Ctx, "data", ""))
	}, eldest.ErrOutcomeUnknown)
	full("`Leadership.Proclaim`", "proclaim", st.Election, l.Key(), 1, func() error { return l.Proclaim(st.Ctx, []byte("v")) }, eldest.ErrOutcomeUnknown)
	full("`Candidate.Proclaim`", "proclaim", st.Election, waiting.Key(), 1, func() error { return waiting.Proclaim(st.Ctx, []byte("v")) }, eldest.ErrOutcomeUnknown)
	s.rows = append(s.rows, row{tried: "`Withdraw`: leaving needs no space", sent: 1, changes: true, try: func() error { return waiting.Withdraw(st.Ctx) }})
	// The key may exist: the clean-up looks for it and removes it.
	late := func(tried, op string, c *election.Candidate, try func() error) {
		s.rows = append(s.rows, row{tried: tried, op: op, election: c.Election(), key: c.Key(), want: []error{eldest.ErrOutcomeUnknown, rpctypes.ErrNoSpace}, sent: -1, try: try})
	}
	late("`Campaign`", "campaign", c1, func() error { return second(c1.Campaign(st.Ctx)) })
	late("`Try`", "try", c2, func() error { return second(c2.Try(st.Ctx)) })
	return s
}
