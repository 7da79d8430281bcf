package sim

import (
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// byHand takes away or overwrites a candidate's key, or revokes its lease.
func (s *show) byHand(a *actor, v verb, next time.Duration) {
	ctx := s.world.T.Context()
	for _, k := range s.queue() {
		if oracle.LeaseOf(k.Key) != a.lease() || !s.up() {
			continue
		}
		unimpeded := next > time.Second && s.well(a)
		e := oracle.Event{Who: "admin", Kind: oracle.Removed, Token: k.Create, Key: k.Key, Lease: k.Lease, Clear: unimpeded, Text: string(v)}
		var err error
		switch {
		case v == overwrite && !unimpeded:
			// A put without a lease makes a key that nobody but its owner would
			// ever remove, so it must be there to do so. Here the lease stays.
			_, err = s.admin.Client.Put(ctx, k.Key, "by hand", clientv3.WithIgnoreLease())
		case v == overwrite:
			s.log.Add(e)
			_, err = s.admin.Client.Put(ctx, k.Key, "by hand")
		case v == remove:
			s.log.Add(e)
			_, err = s.admin.Client.Delete(ctx, k.Key)
		default:
			s.log.Add(e)
			_, err = s.admin.Client.Revoke(ctx, clientv3.LeaseID(oracle.LeaseOf(k.Key)))
		}
		s.count(string(v), err == nil)
		return
	}
}
