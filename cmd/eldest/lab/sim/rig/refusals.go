package rig

import (
	"errors"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Refusal is a reason for which the server turned a host down: the proof that a fault
// of the server reached somebody.
type Refusal string

// What is counted.
const (
	NoSpace      Refusal = "no space"      // the NOSPACE alarm is up
	InvalidToken Refusal = "invalid token" // of authentication: expired, or unknown since a restart
	Compacted    Refusal = "watch overrun" // a watch asked for what a compaction had taken
	Denied       Refusal = "not permitted" // authentication: of a role that may not
	NoLease      Refusal = "lease is gone" // renewals and registrations of leases that have expired or were revoked
)

var reasons = map[error]Refusal{
	rpctypes.ErrNoSpace:          NoSpace,
	rpctypes.ErrInvalidAuthToken: InvalidToken,
	rpctypes.ErrPermissionDenied: Denied,
	rpctypes.ErrLeaseNotFound:    NoLease,
}

// Refusals returns how often the server refused something, by reason.
func (s *Server) Refusals() map[Refusal]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[Refusal]int{}
	for why, n := range s.refusals {
		out[why] = n
	}
	return out
}

// refused counts an error that goes out to a host.
func (s *Server) refused(err error) {
	var known rpctypes.EtcdError
	if !errors.As(rpctypes.Error(err), &known) {
		return
	}
	for reason, why := range reasons {
		if errors.Is(known, reason) {
			s.count(why)
		}
	}
}

// told counts a refusal that goes out as a message of a watch.
func (s *Server) told(m any) {
	if resp, ok := m.(*pb.WatchResponse); ok && resp.CompactRevision != 0 {
		s.count(Compacted)
	}
}

func (s *Server) count(why Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals[why]++
}
