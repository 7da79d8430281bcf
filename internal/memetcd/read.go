package memetcd

import (
	"bytes"
	"cmp"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// within reports whether a key is in the range, as etcd encodes it: end "" is the one key, and
// "\x00" all keys from begin on.
func within(key, begin, end string) bool {
	switch end {
	case "":
		return key == begin
	case "\x00":
		return key >= begin
	default:
		return begin <= key && key < end
	}
}

// between returns the versions in a range at a revision, 0 for the newest, in the order of the keys.
func (e *Etcd) between(begin, end []byte, revision int64) (kvs []*mvccpb.KeyValue) {
	for key, versions := range e.versions {
		if within(key, string(begin), string(end)) {
			if kv := existing(versions, revision); kv != nil {
				kvs = append(kvs, kv)
			}
		}
	}
	slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return kvs
}

func checkRange(r *pb.RangeRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case pb.RangeRequest_SortOrder_name[int32(r.SortOrder)] == "", pb.RangeRequest_SortTarget_name[int32(r.SortTarget)] == "":
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

// get carries out a range request. The caller holds the mutex.
func (e *Etcd) get(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	if r.Revision > e.revision {
		return nil, rpctypes.ErrGRPCFutureRev
	}
	kvs := e.between(r.Key, r.RangeEnd, max(0, r.Revision))
	resp := &pb.RangeResponse{Header: e.header(), Count: int64(len(kvs))}
	if r.CountOnly {
		return resp, nil
	}
	bounded := r.MinModRevision != 0 || r.MaxModRevision != 0 || r.MinCreateRevision != 0 || r.MaxCreateRevision != 0
	if r.SortOrder == pb.RangeRequest_NONE && !bounded && r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs = kvs[:r.Limit+1] // as etcd, which without an order sorts only these
	}
	kvs = slices.DeleteFunc(kvs, func(kv *mvccpb.KeyValue) bool {
		return outside(kv.ModRevision, r.MinModRevision, r.MaxModRevision) || outside(kv.CreateRevision, r.MinCreateRevision, r.MaxCreateRevision)
	})
	slices.SortStableFunc(kvs, func(a, b *mvccpb.KeyValue) int {
		if r.SortOrder == pb.RangeRequest_DESCEND {
			a, b = b, a
		}
		return order(r.SortTarget, a, b)
	})
	if r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs, resp.More = kvs[:r.Limit], true
	}
	for _, kv := range kvs {
		kv = clone(kv)
		if r.KeysOnly {
			kv.Value = nil
			if r.SortTarget != pb.RangeRequest_VALUE {
				kv.Lease = 0 // as etcd from 3.7 on, which reads the keys from an index
			}
		}
		resp.Kvs = append(resp.Kvs, kv)
	}
	return resp, nil
}

// outside reports whether a revision is not between least and most; 0 is no limit.
func outside(revision, least, most int64) bool {
	return least != 0 && revision < least || most != 0 && revision > most
}

func order(by pb.RangeRequest_SortTarget, a, b *mvccpb.KeyValue) int {
	switch by {
	case pb.RangeRequest_VERSION:
		return cmp.Compare(a.Version, b.Version)
	case pb.RangeRequest_CREATE:
		return cmp.Compare(a.CreateRevision, b.CreateRevision)
	case pb.RangeRequest_MOD:
		return cmp.Compare(a.ModRevision, b.ModRevision)
	case pb.RangeRequest_VALUE:
		return bytes.Compare(a.Value, b.Value)
	default:
		return bytes.Compare(a.Key, b.Key)
	}
}
