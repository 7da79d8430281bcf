package dropin

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	their "go.etcd.io/etcd/client/v3/concurrency"

	our "github.com/eldest-io/eldest/compat/concurrency"
)

// session, election and mutex are the common methods of both packages. That their types fit shows
// that the methods are the same; a test in compat/concurrency shows the same for the functions.
type session interface {
	Client() *clientv3.Client
	Lease() clientv3.LeaseID
	Ctx() context.Context
	Done() <-chan struct{}
	Orphan()
	Close() error
}

type election interface {
	Campaign(ctx context.Context, val string) error
	Proclaim(ctx context.Context, val string) error
	Resign(ctx context.Context) error
	Leader(ctx context.Context) (*clientv3.GetResponse, error)
	Observe(ctx context.Context) <-chan *clientv3.GetResponse
	Key() string
	Rev() int64
	Header() *pb.ResponseHeader
}

type mutex interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) error
	Unlock(ctx context.Context) error
	IsOwner() clientv3.Cmp
	Key() string
	Header() *pb.ResponseHeader
}

// options are those of NewSession; nil and zero values mean that an option is not given.
type options struct {
	ttl   *int
	lease clientv3.LeaseID
	ctx   context.Context
}

// face is one of the two packages.
type face struct {
	name           string
	newSession     func(cli *clientv3.Client, o options) (session, error)
	newElection    func(s session, pfx string) election
	resumeElection func(s session, pfx, key string, rev int64) election
	newMutex       func(s session, pfx string) mutex
	newLocker      func(s session, pfx string) sync.Locker
	// transfer moves one from a counter to another in a transaction of the STM.
	transfer func(ctx context.Context, cli *clientv3.Client, from, to string) error

	errNotLeader, errNoLeader, errLocked, errExpired, errReleased error
}

// newSession makes the newSession of a face. A failure has no session: not a nil pointer in it.
func newSession[S session, O any](
	open func(*clientv3.Client, ...O) (S, error),
	ttl func(int) O, lease func(clientv3.LeaseID) O, ctx func(context.Context) O,
) func(*clientv3.Client, options) (session, error) {
	return func(cli *clientv3.Client, o options) (session, error) {
		var opts []O
		if o.ttl != nil {
			opts = append(opts, ttl(*o.ttl))
		}
		if o.lease != 0 {
			opts = append(opts, lease(o.lease))
		}
		if o.ctx != nil {
			opts = append(opts, ctx(o.ctx))
		}
		s, err := open(cli, opts...)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

var ours = face{
	name:        "ours",
	newSession:  newSession(our.NewSession, our.WithTTL, our.WithLease, our.WithContext),
	newElection: func(s session, pfx string) election { return our.NewElection(s.(*our.Session), pfx) },
	resumeElection: func(s session, pfx, key string, rev int64) election {
		return our.ResumeElection(s.(*our.Session), pfx, key, rev)
	},
	newMutex:  func(s session, pfx string) mutex { return our.NewMutex(s.(*our.Session), pfx) },
	newLocker: func(s session, pfx string) sync.Locker { return our.NewLocker(s.(*our.Session), pfx) },
	transfer: func(ctx context.Context, cli *clientv3.Client, from, to string) error {
		_, err := our.NewSTM(cli, func(stm our.STM) error { return move(stm, from, to) },
			our.WithAbortContext(ctx), our.WithIsolation(our.SerializableSnapshot), our.WithPrefetch(from, to))
		return err
	},
	errNotLeader: our.ErrElectionNotLeader, errNoLeader: our.ErrElectionNoLeader,
	errLocked: our.ErrLocked, errExpired: our.ErrSessionExpired, errReleased: our.ErrLockReleased,
}

var theirs = face{
	name:        "etcd's",
	newSession:  newSession(their.NewSession, their.WithTTL, their.WithLease, their.WithContext),
	newElection: func(s session, pfx string) election { return their.NewElection(s.(*their.Session), pfx) },
	resumeElection: func(s session, pfx, key string, rev int64) election {
		return their.ResumeElection(s.(*their.Session), pfx, key, rev)
	},
	newMutex:  func(s session, pfx string) mutex { return their.NewMutex(s.(*their.Session), pfx) },
	newLocker: func(s session, pfx string) sync.Locker { return their.NewLocker(s.(*their.Session), pfx) },
	transfer: func(ctx context.Context, cli *clientv3.Client, from, to string) error {
		_, err := their.NewSTM(cli, func(stm their.STM) error { return move(stm, from, to) },
			their.WithAbortContext(ctx), their.WithIsolation(their.SerializableSnapshot), their.WithPrefetch(from, to))
		return err
	},
	errNotLeader: their.ErrElectionNotLeader, errNoLeader: their.ErrElectionNoLeader,
	errLocked: their.ErrLocked, errExpired: their.ErrSessionExpired, errReleased: their.ErrLockReleased,
}

// move is the transaction of transfer.
func move(stm their.STM, from, to string) error {
	f, t := stm.Get(from), stm.Get(to)
	stm.Put(from, f[1:])
	stm.Put(to, t+f[:1])
	return nil
}
