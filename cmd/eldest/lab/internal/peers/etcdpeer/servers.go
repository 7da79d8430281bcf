package etcdpeer

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/benchsite"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// members is how many members each cluster has.
const members = 3

// servers is a cluster of etcd, with the client of this process. What that sends is none of the participants' requests.
type servers struct {
	cluster *etcdtest.Cluster
	admin   *clientv3.Client
}

// start starts a cluster with etcd's default timeouts and fsync. The settings of the systems are those of their
// clients: all use etcd with its defaults.
func start(ctx context.Context, cfg peer.ServerConfig) (*peer.Servers, error) {
	cluster, err := benchsite.Start(ctx, members, cfg.Dir, []string{cfg.Executable, "etcd", "member"}, cfg.Died)
	if err != nil {
		return nil, err
	}
	s := &servers{cluster: cluster}
	if s.admin, err = clientv3.New(clientv3.Config{Endpoints: cluster.Endpoints(), Logger: zap.NewNop()}); err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	var status *clientv3.StatusResponse
	if _, err = cluster.Leader(ctx); err == nil {
		status, err = s.admin.Status(ctx, cluster.Endpoints()[0])
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return &peer.Servers{
		Version: "etcd " + status.Version, Nodes: members, Endpoints: cluster.Endpoints(),
		Writes: s.writes, KillLeader: benchsite.KillLeader(cluster), Close: s.close,
	}, nil
}

// writes returns the highest index in the members' Raft logs. The log has what must be replicated: writes,
// and the grants and revocations of leases. It does not have reads and renewals of leases.
func (s *servers) writes(ctx context.Context) (int64, error) {
	type answer struct {
		index uint64
		err   error
	}
	answers := make(chan answer, members)
	for _, endpoint := range s.cluster.Endpoints() {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // a member may be dead
			defer cancel()
			status, err := s.admin.Status(ctx, endpoint)
			if err != nil {
				answers <- answer{err: fmt.Errorf("%s: %w", endpoint, err)}
				return
			}
			answers <- answer{index: status.RaftIndex}
		}()
	}
	var highest uint64
	var errs []error
	for range members {
		a := <-answers
		highest = max(highest, a.index)
		errs = append(errs, a.err)
	}
	if highest == 0 {
		return 0, errors.Join(errs...)
	}
	return int64(highest), nil
}

func (s *servers) close() error { return errors.Join(s.admin.Close(), s.cluster.Close()) }
