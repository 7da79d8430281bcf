package devcluster

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/server/v3/embed"
)

// Member is one etcd server inside this process. Its methods may be called from
// many goroutines.
type Member struct {
	etcd *embed.Etcd
}

// StartMember starts a member and returns without waiting for it to join: a
// member of a new cluster is ready only when a majority of it has started. Use
// Ready to wait. The caller must Stop the member.
func StartMember(cfg *embed.Config) (*Member, error) {
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", cfg.Name, err)
	}
	return &Member{etcd: etcd}, nil
}

// Ready blocks until the member serves requests, which takes a cluster with a
// leader, or until ctx ends or the member fails, and returns the reason.
func (m *Member) Ready(ctx context.Context) error {
	select {
	case <-m.etcd.Server.ReadyNotify():
		return nil
	case <-m.etcd.Server.StopNotify():
		return errors.New("the member stopped while it was starting")
	case err := <-m.etcd.Err():
		return err
	case <-ctx.Done():
		return fmt.Errorf("the member is not ready: %w", context.Cause(ctx))
	}
}

// ID is the member's ID in the cluster, in hex.
func (m *Member) ID() string { return fmt.Sprintf("%x", uint64(m.etcd.Server.MemberID())) }

// Done is closed when the server has stopped, for whatever reason.
func (m *Member) Done() <-chan struct{} { return m.etcd.Server.StopNotify() }

// Stop ends the member at once and waits for it: connections are reset, not drained, and leadership
// is not transferred first, because each open watch would delay that for seconds. On a busy machine a
// watch sometimes delays the end anyway, for 5 s and two election timeouts at most: etcd's server then
// waits for the watch before it is notified of its own end.
func (m *Member) Stop() {
	m.etcd.Server.HardStop()
	m.etcd.Close()
}
