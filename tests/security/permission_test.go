package security

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// act is an operation of a participant.
type act struct {
	name string
	// needs is the permission that a role needs on the election's range.
	needs clientv3.PermissionType
	do    func(t *testing.T, f *fortress, cli *clientv3.Client) error
}

const svc = "svc"

// acts leave etcd as it was, whether or not they are allowed.
var acts = []act{
	{"leader", read, func(t *testing.T, _ *fortress, cli *clientv3.Client) error {
		_, err := observe.LeaderOf(etcdtest.Context(t), cli, svc)
		return err
	}},
	{"queue", read, func(t *testing.T, _ *fortress, cli *clientv3.Client) error {
		queue, err := observe.Queue(etcdtest.Context(t), cli, cli, svc)
		if err == nil {
			require.Len(t, queue, 1)
			require.Positive(t, queue[0].TTL)
		}
		return err
	}},
	{"observe", read, func(t *testing.T, _ *fortress, cli *clientv3.Client) error {
		o, err := observe.New(observe.Config{Election: svc, KV: cli, Watcher: cli})
		require.NoError(t, err)
		defer o.Close()
		for states := o.Subscribe(); ; {
			state, err := states.Next(etcdtest.Context(t))
			if err != nil || state.Kind == eldest.Led {
				return err
			}
			if !errors.Is(state.Reason, eldest.ErrUnavailable) { // otherwise the machine is busy
				return state.Reason
			}
		}
	}},
	{"register", readWrite, stands(func(ctx context.Context, c *election.Candidate) error {
		_, err := c.Register(ctx)
		return err
	})},
	{"campaign", readWrite, func(t *testing.T, f *fortress, cli *clientv3.Client) error {
		stood, enough := context.WithCancel(etcdtest.Context(t))
		defer enough()
		return stands(func(_ context.Context, c *election.Candidate) error {
			_, err := c.Campaign(stood)
			if errors.Is(err, context.Canceled) {
				return nil // another candidate leads, and this one has waited until Waiting was called
			}
			return err
		}, func(cfg *election.Config) {
			cfg.Hooks.Waiting = func(election.WaitingEvent) { enough() }
		})(t, f, cli)
	}},
	{"try", readWrite, stands(func(ctx context.Context, c *election.Candidate) error {
		_, err := c.Try(ctx)
		if errors.Is(err, eldest.ErrNotElected) {
			return nil // it has read the queue, and another candidate leads
		}
		return err
	})},
	{"evict", readWrite, func(t *testing.T, f *fortress, cli *clientv3.Client) error {
		// The victim is a candidate of root, behind the leader.
		lease, err := f.root.Grant(etcdtest.Context(t), 60)
		require.NoError(t, err)
		victim := eldest.Candidate{Key: keys.Candidate(svc, int64(lease.ID)), Lease: int64(lease.ID)}
		put, err := f.root.Put(etcdtest.Context(t), victim.Key, "victim", clientv3.WithLease(lease.ID))
		require.NoError(t, err)
		victim.Token = eldest.Token(put.Header.Revision)
		err = election.Evict(etcdtest.Context(t), cli, svc, victim)
		left, getErr := f.root.Get(etcdtest.Context(t), victim.Key)
		require.NoError(t, getErr)
		require.Equal(t, err == nil, len(left.Kvs) == 0, "the error and the deed differ")
		if err != nil {
			require.Equal(t, put.Header.Revision, left.Kvs[0].ModRevision)
			require.Equal(t, put.Header.Revision, left.Header.Revision, "something was written")
		}
		_, err2 := f.root.Revoke(etcdtest.Context(t), lease.ID)
		require.NoError(t, err2)
		return err
	}},
	{"elector", readWrite, func(t *testing.T, _ *fortress, cli *clientv3.Client) error {
		e, err := elector.New(elector.Config{
			Election: svc, NodeID: "n", Address: "n:1", Source: elector.Always(elector.Client(cli)), Session: lease.Options{TTL: 10 * time.Second},
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := etcdtest.Go(func() error {
			return e.Run(ctx, func(context.Context, *elector.Leadership) error {
				t.Error("it leads, where somebody else does")
				return nil
			})
		})
		// It follows the leader, or reports why it does not.
		s, err := e.Watch().NextWhere(etcdtest.Context(t), func(s elector.Status) bool {
			return s.Role() == elector.Following || errors.Is(s.Reason(), rpctypes.ErrPermissionDenied)
		})
		require.NoError(t, err, "%v", e.Status())
		stop()
		require.ErrorIs(t, etcdtest.Take(t, done, "the end of Run"), context.Canceled)
		return s.Reason()
	}},
}

// stands makes a candidate with a session of its own, calls do, and lets the candidate leave.
func stands(do func(ctx context.Context, c *election.Candidate) error, changes ...func(*election.Config)) func(*testing.T, *fortress, *clientv3.Client) error {
	return func(t *testing.T, _ *fortress, cli *clientv3.Client) error {
		// Any user that is logged in may have a lease.
		p := electiontest.Join(t, cli, svc, func(_ *lease.Config, e *election.Config) {
			e.Value = []byte("intruder")
			for _, change := range changes {
				change(e)
			}
		})
		err := do(etcdtest.Context(t), p.Candidate)
		require.NoError(t, p.Candidate.Close(etcdtest.Context(t)))
		require.NoError(t, p.Session.Close(etcdtest.Context(t)), "its lease is its own to revoke")
		return err
	}
}

// A role with fewer permissions than an act needs on exactly the election's range is refused, with
// an error for that reason, and changes nothing; a role with exactly these permissions may do it.
// The same holds for users with passwords, and for users by the names of certificates.
func TestPermissions(t *testing.T) {
	t.Parallel()
	f := newFortress(t, simple, 0)
	roles := map[string][]permission{
		"nothing":   {},
		"reads":     {on(svc, read)},
		"writes":    {on(svc, write)},
		"stands":    {on(svc, readWrite)},
		"neighbour": {on("svca", readWrite), on("sv", readWrite), on("svc0", readWrite)},
		"half":      {{"svc/", "svc/g", readWrite}}, // contains all leases, but is not the whole range
		"one key":   {{from: "svc/1", may: readWrite}, {from: "svc", may: readWrite}, {from: "svc/", may: readWrite}},
	}
	allowed := func(role string, a act) bool {
		switch role {
		case "reads":
			return a.needs == read
		case "half": // an eviction uses only the key of the evicted candidate
			return a.name == "evict"
		}
		return role == "stands"
	}
	for name, permissions := range roles {
		f.user(name, permissions...)
	}
	value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: "leader", Address: "leader:1", TTL: time.Minute})
	require.NoError(t, err)
	leader := electiontest.Join(t, f.root, svc, func(_ *lease.Config, e *election.Config) { e.Value = value })
	l := leader.Lead(t)
	for name := range roles {
		for login, cli := range map[string]*clientv3.Client{"password": f.client(name, "somebody"), "certificate": f.client("", name)} {
			for _, a := range acts {
				t.Run(name+"/"+login+"/"+a.name, func(t *testing.T) {
					before := f.contents()
					err := a.do(t, f, cli)
					if allowed(name, a) {
						require.NoError(t, err)
						after := f.contents()
						require.Equal(t, before.keys, after.keys, "it was not left as it was")
						return
					}
					require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
					require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown, "a refusal is certain")
					var op *eldest.OpError
					require.ErrorAs(t, err, &op)
					require.Equal(t, svc, op.Election)
					require.ErrorContains(t, err, "permission denied")
					after := f.contents()
					if a.name == "evict" { // root has changed it itself
						before.revision = after.revision
					}
					require.Equal(t, before, after, "somebody without permission has changed something")
				})
			}
		}
	}
	require.True(t, l.Holds(0), "the leader is not concerned")
	require.NoError(t, leader.Candidate.Close(etcdtest.Context(t)))
	require.NoError(t, leader.Session.Close(etcdtest.Context(t)))
}

// A leader whose role has only the election's range can do all that leaders do, for longer than its
// TTL; it cannot write outside the range, guarded or not, and can do so once its role allows
// it.
func TestRoleOfExactlyTheRange(t *testing.T) {
	t.Parallel()
	f := newFortress(t, simple, 0)
	f.user("node", on(svc, readWrite))
	cli := f.client("node", "somebody")
	renewed := make(chan struct{}, 1000)
	p := electiontest.Join(t, cli, svc, func(l *lease.Config, _ *election.Config) {
		l.TTL = 6 * time.Second // a busy machine can keep it
		l.Renewal = func(granted time.Duration) lease.Renewal {
			return lease.Renewal{Every: granted / 6, Timeout: granted / 2}
		}
		l.Hooks.Renewed = func(lease.RenewedEvent) { renewed <- struct{}{} }
	})
	l := p.Lead(t)
	require.NoError(t, l.Proclaim(etcdtest.Context(t), []byte("news")))
	for range 7 { // longer than its TTL
		etcdtest.Take(t, renewed, "a renewal")
	}
	require.True(t, l.Holds(0))

	before := f.contents()
	_, err := l.KV().Put(etcdtest.Context(t), "data", "1")
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
	require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
	require.ErrorIs(t, etcdtest.Err(l.Txn(etcdtest.Context(t)).Then(clientv3.OpPut("data", "1")).Commit()), rpctypes.ErrPermissionDenied)
	require.ErrorIs(t, etcdtest.Err(l.KV().Get(etcdtest.Context(t), "data")), rpctypes.ErrPermissionDenied)
	require.ErrorIs(t, etcdtest.Err(cli.Put(etcdtest.Context(t), "data", "1")), rpctypes.ErrPermissionDenied)
	require.Equal(t, before, f.contents())
	require.True(t, l.Holds(0), "a refusal of the data is none of the tenure")

	f.grant("node", permission{from: "data", may: readWrite})
	require.NoError(t, etcdtest.Err(l.KV().Put(etcdtest.Context(t), "data", "2")))
	require.NoError(t, l.Resign(etcdtest.Context(t)))
	require.ErrorIs(t, etcdtest.Err(l.KV().Put(etcdtest.Context(t), "data", "3")), eldest.ErrNotLeading)
	require.NoError(t, p.Candidate.Close(etcdtest.Context(t)))
	require.NoError(t, p.Session.Close(etcdtest.Context(t)))
	left := f.contents()
	require.Len(t, left.keys, 1)
	require.Equal(t, "2", left.keys[0].value)
	require.Empty(t, left.leases)
}

// A role loses its permission during a tenure: the leader leads until its key or its lease ends,
// since nothing has removed them, but cannot write any more; it can leave no key behind for longer
// than its lease.
func TestPermissionTakenFromALeader(t *testing.T) {
	t.Parallel()
	f := newFortress(t, simple, 0)
	f.user("node", on(svc, readWrite), permission{from: "data", may: readWrite})
	cli := f.client("node", "somebody")
	p := electiontest.Join(t, cli, svc, func(l *lease.Config, _ *election.Config) { l.TTL = 4 * time.Second })
	l := p.Lead(t)
	taken := on(svc, readWrite)
	require.NoError(t, etcdtest.Err(f.root.RoleRevokePermission(etcdtest.Context(t), "node", taken.from, taken.to)))
	require.ErrorIs(t, etcdtest.Err(l.KV().Put(etcdtest.Context(t), "data", "1")), rpctypes.ErrPermissionDenied)
	require.ErrorIs(t, l.Proclaim(etcdtest.Context(t), []byte("x")), rpctypes.ErrPermissionDenied)
	require.Len(t, f.contents().keys, 1)
	err := p.Candidate.Close(etcdtest.Context(t))
	t.Logf("the farewell of a leader without permission: %v; of its session: %v", err, p.Session.Close(etcdtest.Context(t)))
	require.NotNil(t, l.Err())
	etcdtest.Eventually(t, func() bool { c := f.contents(); return len(c.keys) == 0 && len(c.leases) == 0 }, "the key is gone with its lease")
}
