package lease

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Majority answers a question that only a majority of etcd's members can answer
// together. *clientv3.Client and clientv3.Cluster do.
type Majority interface {
	// MemberList is asked without options. What is wanted is not the list but the
	// header: a majority has just confirmed whom it follows, in which Raft term.
	// Unlike a read of a key, it needs no permission.
	MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error)
}

// Unconfirmed is the Majority of sessions whose renewals are to count although no majority
// confirms them: for clients that cannot list etcd's members. What is lost is G3 in one case
// (decision 0015): etcd's leader is stopped or paused, replaced, and goes on. It then answers
// renewals that its successor does not count, so the successor may expire the lease before
// the session's deadline (measured: by up to 0.7 s at a TTL of 2 s), and two candidates lead.
type Unconfirmed struct{}

// MemberList returns at once an empty answer, which confirms every renewal. It sends nothing.
func (Unconfirmed) MemberList(context.Context, ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	return &clientv3.MemberListResponse{}, nil
}

// answers reports whether m can be asked. A client that was put together from parts may have
// no Cluster, and panics.
func answers(m Majority) bool {
	client, ok := m.(*clientv3.Client)
	return m != nil && (!ok || client != nil && client.Cluster != nil)
}
