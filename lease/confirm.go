package lease

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Majority answers a request that needs a majority of etcd's members. *clientv3.Client and
// clientv3.Cluster do.
type Majority interface {
	// MemberList is called without options. Only the header of the reply is used: its Raft term is
	// that of the leader that a majority has just confirmed. Unlike a read of a key, it needs no
	// permission.
	MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error)
}

// Unconfirmed is the Majority of sessions whose renewals count without the confirmation of a
// majority: for clients that cannot list etcd's members. G3 then fails in one case (decision 0015):
// etcd's leader is stopped or paused, replaced, and continues. It then answers renewals that its
// successor does not count, so the successor may expire the lease before the session's deadline
// (measured: by up to 0.7 s at a TTL of 2 s), and two candidates lead.
type Unconfirmed struct{}

// MemberList returns an empty reply at once, which confirms every renewal. It sends nothing.
func (Unconfirmed) MemberList(context.Context, ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	return &clientv3.MemberListResponse{}, nil
}

// answers reports whether m can be called. A client that was made from parts may have no Cluster,
// and would panic.
func answers(m Majority) bool {
	client, ok := m.(*clientv3.Client)
	return m != nil && (!ok || client != nil && client.Cluster != nil)
}
