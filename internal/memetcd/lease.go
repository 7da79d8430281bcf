package memetcd

import (
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Limits of a lease's TTL, in seconds, as in an etcd with default settings.
const (
	leastTTL = 2
	mostTTL  = 9_000_000_000
)

// lease is a lease that exists.
type lease struct {
	ttl     int64 // in seconds
	renewed time.Time
	expiry  *time.Timer
}

// lasts returns for how long the lease exists from its last renewal on, at most about 146 years.
func (l *lease) lasts() time.Duration {
	if l.ttl > int64(time.Duration(1<<62)/time.Second) {
		return 1 << 62
	}
	return time.Duration(l.ttl) * time.Second
}

func (e *Etcd) grant(r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if r.TTL > mostTTL {
		return nil, rpctypes.ErrGRPCLeaseTTLTooLarge
	}
	e.last++
	id := e.last // etcd's client never asks for an ID
	l := &lease{ttl: max(r.TTL, leastTTL), renewed: time.Now()}
	l.expiry = time.AfterFunc(l.lasts(), func() { e.expire(id, l) })
	e.leases[id] = l
	return &pb.LeaseGrantResponse{Header: e.header(), ID: id, TTL: l.ttl}, nil
}

func (e *Etcd) renew(r *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error) {
	resp := &pb.LeaseKeepAliveResponse{Header: e.header(), ID: r.ID}
	if l := e.leases[r.ID]; l != nil {
		l.renewed = time.Now()
		l.expiry.Reset(l.lasts())
		resp.TTL = l.ttl
	}
	return resp, nil
}

func (e *Etcd) timeToLive(r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	resp := &pb.LeaseTimeToLiveResponse{Header: e.header(), ID: r.ID, TTL: -1}
	l := e.leases[r.ID]
	if l == nil {
		return resp, nil
	}
	resp.GrantedTTL, resp.TTL = l.ttl, int64((l.lasts() - time.Since(l.renewed)).Seconds())
	if r.Keys {
		for _, kv := range e.bound(r.ID) {
			resp.Keys = append(resp.Keys, copied(kv.Key))
		}
	}
	return resp, nil
}

func (e *Etcd) list(*pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	resp := &pb.LeaseLeasesResponse{Header: e.header()}
	for _, id := range slices.Sorted(maps.Keys(e.leases)) {
		resp.Leases = append(resp.Leases, &pb.LeaseStatus{ID: id})
	}
	return resp, nil
}

func (e *Etcd) revoke(r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	l := e.leases[r.ID]
	if l == nil {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	e.drop(r.ID, l)
	return &pb.LeaseRevokeResponse{Header: e.header()}, nil
}

// expire is called when the TTL has passed since a renewal; another one may have come since.
func (e *Etcd) expire(id int64, l *lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leases[id] == l && time.Since(l.renewed) >= l.lasts() {
		e.drop(id, l)
	}
}

// drop deletes a lease, and its keys in one revision. The caller holds the mutex.
func (e *Etcd) drop(id int64, l *lease) {
	l.expiry.Stop()
	for _, kv := range e.bound(id) {
		e.set(&mvccpb.KeyValue{Key: kv.Key})
	}
	delete(e.leases, id)
	e.end()
}

// bound returns the keys that are bound to a lease, in their order. The caller holds the mutex.
func (e *Etcd) bound(id int64) []*mvccpb.KeyValue {
	all := e.between([]byte{0}, []byte{0}, 0)
	return slices.DeleteFunc(all, func(kv *mvccpb.KeyValue) bool { return kv.Lease != id })
}
