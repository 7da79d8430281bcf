package memetcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func checkPut(r *pb.PutRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.IgnoreValue && len(r.Value) > 0:
		return rpctypes.ErrGRPCValueProvided
	case r.IgnoreLease && r.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	}
	return nil
}

// put carries out a put. The caller holds the mutex.
func (e *Etcd) put(r *pb.PutRequest) (*pb.PutResponse, error) {
	before := e.newest(string(r.Key))
	switch err := checkPut(r); {
	case err != nil:
		return nil, err
	case r.Lease != 0 && e.leases[r.Lease] == nil:
		return nil, rpctypes.ErrGRPCLeaseNotFound
	case (r.IgnoreValue || r.IgnoreLease) && before == nil:
		return nil, rpctypes.ErrGRPCKeyNotFound
	}
	kv := &mvccpb.KeyValue{Key: copied(r.Key), Value: copied(r.Value), Lease: r.Lease, Version: 1, CreateRevision: e.revision + 1}
	if before != nil {
		kv.Version, kv.CreateRevision = before.Version+1, before.CreateRevision
		if r.IgnoreValue {
			kv.Value = before.Value
		}
		if r.IgnoreLease {
			kv.Lease = before.Lease
		}
	}
	e.set(kv)
	resp := &pb.PutResponse{Header: e.header()}
	if r.PrevKv {
		resp.PrevKv = clone(before)
	}
	return resp, nil
}

func checkDelete(r *pb.DeleteRangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

// remove carries out a deletion. The caller holds the mutex.
func (e *Etcd) remove(r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := checkDelete(r); err != nil {
		return nil, err
	}
	resp := &pb.DeleteRangeResponse{}
	for _, kv := range e.between(r.Key, r.RangeEnd, 0) {
		e.set(&mvccpb.KeyValue{Key: kv.Key})
		resp.Deleted++
		if r.PrevKv {
			resp.PrevKvs = append(resp.PrevKvs, clone(kv))
		}
	}
	resp.Header = e.header()
	return resp, nil
}
