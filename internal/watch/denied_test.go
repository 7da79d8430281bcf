package watch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/internal/watch"
)

// deny refuses the watch, as a member does according to its own copy of the permissions.
func (o *opening) deny(t *testing.T) {
	o.ch <- etcdtest.RefusedWatch(t, rpctypes.ErrPermissionDenied)
}

// A watch that one member refuses and etcd permits is opened again. Meanwhile the target receives
// the answer of a read.
//
// Fails if the refusal of one member is final.
func TestDeniedByOneMember(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.follow(t, s.target(0))
		(<-s.watches).deny(t)
		(<-s.reads).answer(10, kv("k/1", 9, 9))
		require.Equal(t, []string{
			"snapshot 10 with 1",
			"interrupted: etcdserver: permission denied",
		}, s.told())
		s.place(t, 11).send(putEvent(kv("k/1", 9, 12)))
		require.Equal(t, []string{"snapshot 11 with 0", "change 12 with 1"}, s.told())
	})
}

// If etcd refuses the read as well, Follow fails at once.
func TestDeniedByAll(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		begun := time.Now()
		result, _ := s.follow(t, s.target(0))
		(<-s.watches).deny(t)
		(<-s.reads).fail(rpctypes.ErrPermissionDenied)
		require.ErrorIs(t, <-result, rpctypes.ErrPermissionDenied)
		require.Zero(t, time.Since(begun))
		require.Empty(t, s.told())
	})
}

// If reads are permitted and watches are refused, Follow and Gone fail after a while. The time starts
// again after each watch that is permitted: a member may lag more than once.
func TestDeniedForTooLong(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, s *stage) <-chan error{
		"range": func(t *testing.T, s *stage) <-chan error { result, _ := s.follow(t, s.target(0)); return result },
		"life": func(t *testing.T, s *stage) <-chan error {
			return start(func() error { return gone(t.Context(), s.Source, watch.Life{Key: "k/1", Token: 9}).err })
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				revision := int64(10)
				denied := func(result <-chan error, limit time.Duration) error {
					for begun := time.Now(); ; {
						select {
						case o := <-s.watches:
							if time.Since(begun) >= limit {
								revision++
								o.created(revision)
								(<-s.reads).answer(revision, kv("k/1", 9, 9))
								synctest.Wait()
								close(o.ch)
								return nil
							}
							o.deny(t)
						case r := <-s.reads:
							r.answer(revision, kv("k/1", 9, 9))
						case err := <-result:
							require.Greater(t, time.Since(begun), 2*time.Second)
							return err
						}
					}
				}
				result := begin(t, s)
				for range 3 {
					require.NoError(t, denied(result, 2*time.Second))
				}
				require.ErrorIs(t, denied(result, time.Minute), rpctypes.ErrPermissionDenied)
			})
		})
	}
}

// An error that ends a stream for all its users is not final: it may come from a balancer. The
// refusal of a read is final if it is repeated, however short the time is for which the source
// waits for a member that does not respond.
//
// Fails if the error that ends a watch is final.
func TestRefusedOnTheWay(t *testing.T) {
	forbidden := status.Error(codes.PermissionDenied, "unexpected HTTP status code received from server: 403 (Forbidden)")
	play(t, func(t *testing.T, s *stage) {
		s.Timeout = 200 * time.Millisecond
		result, _ := s.follow(t, s.target(0))
		o := s.place(t, 10)
		o.ch <- etcdtest.RefusedWatch(t, forbidden)
		(<-s.watches).ch <- etcdtest.RefusedWatch(t, forbidden)
		(<-s.reads).fail(forbidden)
		(<-s.reads).answer(11)
		s.place(t, 12).deny(t)
		<-s.watches // nor is etcd's refusal of a watch final
		require.Len(t, s.told(), 6)
		begun := time.Now()
		for {
			select {
			case o := <-s.watches:
				o.deny(t)
			case r := <-s.reads:
				r.fail(forbidden)
				continue
			case err := <-result:
				require.ErrorIs(t, err, forbidden)
				require.Greater(t, time.Since(begun), retryrpc.Insistent)
				require.Less(t, time.Since(begun), 2*retryrpc.Insistent)
				return
			}
		}
	})
}

// A partitioned member has not received a permission that was granted. It refuses what etcd permits
// until it has caught up. This is visible only on a stream that is open already: for a new stream
// etcd's client requests a token, and the member waits until it has received that.
//
// Fails if the refusal of one member is final.
func TestMemberThatLagsInPermissions(t *testing.T) {
	t.Parallel()
	// The partitioned member continues as a follower for at least an election timeout.
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Election: 2 * time.Second})
	ctx := etcdtest.Context(t)
	leader, err := c.Leader(ctx)
	require.NoError(t, err)
	lags := (leader + 1) % c.Size()
	held, target := etcdtest.Election(t)+"/", etcdtest.Election(t)+"/"
	permit := func(cli *clientv3.Client, prefix string) {
		_, err := cli.RoleGrantPermission(ctx, "app", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
		require.NoError(t, err)
	}
	admin := c.ClientTo(t, leader)
	for _, name := range []string{"root", "app"} {
		require.NoError(t, etcdtest.Err(admin.UserAdd(ctx, name, "secret")))
		require.NoError(t, etcdtest.Err(admin.RoleAdd(ctx, name)))
		require.NoError(t, etcdtest.Err(admin.UserGrantRole(ctx, name, name)))
	}
	permit(admin, held)
	require.NoError(t, etcdtest.Err(admin.AuthEnable(ctx)))
	as := func(name string, member int) *clientv3.Client {
		return c.ClientTo(t, member, func(cfg *clientv3.Config) { cfg.Username, cfg.Password = name, "secret" })
	}
	root, cli := as("root", leader), as("app", leader)

	s := patient(cli)
	s.Watcher = as("app", lags)
	// The attempts are frequent: the refusal becomes final after a while, and the member must be
	// back before that.
	s.Backoff = func(int) time.Duration { return 20 * time.Millisecond }
	follow(t, s, held)
	require.NoError(t, etcdtest.Err(root.Get(ctx, held))) // so that granting the permission takes one request
	require.NoError(t, c.Cut(lags))
	permit(root, target)
	p := follow(t, s, target)
	var refused error
	p.until(t, "the refusal", func() bool {
		if len(p.interrupted) > 0 {
			refused = p.interrupted[0]
		}
		return refused != nil
	})
	require.ErrorContains(t, refused, "permission denied")
	require.NoError(t, c.Mend(lags))
	require.NoError(t, etcdtest.Err(cli.Put(ctx, target+"a", "1")))
	p.until(t, "the change", func() bool { return p.kvs[target+"a"] == "1" })
	p.until(t, "a watch", func() bool { return p.snapshots > len(p.interrupted) })
}
