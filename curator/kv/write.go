package kv

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// change is one write: an operation on the data, its condition, and what is read if the condition
// does not hold.
type change struct {
	record    *kvpb.Record
	condition []clientv3.Cmp
	op        clientv3.Op
	otherwise clientv3.Op
}

// apply sends a change and its record as one guarded transaction. If the condition does not hold,
// the receipt and the error are nil, and the response has what was read for that case.
func (s *Server) apply(ctx context.Context, c change) (*kvpb.Receipt, *clientv3.GetResponse, error) {
	record, err := s.record(c.record)
	if err != nil {
		return nil, nil, status.Error(codes.InvalidArgument, err.Error()) // for example because of invalid UTF-8
	}
	// New has made sure that no other server counts in this tenure, so the entry is new.
	entry := s.space.entry(s.l.Token(), s.written.Add(1))
	resp, err := s.l.Txn(ctx).
		If(c.condition...).
		Then(c.op, clientv3.OpPut(entry, record)).
		Else(c.otherwise).
		Commit()
	if err != nil {
		return nil, nil, answer(err)
	}
	if !resp.Succeeded {
		return nil, (*clientv3.GetResponse)(resp.Responses[0].GetResponseRange()), nil
	}
	return &kvpb.Receipt{Token: int64(s.l.Token()), Revision: resp.Header.Revision}, nil, nil
}

// Put sets a key; see kvpb.KV.
func (s *Server) Put(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	if err := check(r.GetRequestId(), r.GetKey(), r.GetValue()); err != nil {
		return nil, err
	}
	key := s.space.Data(r.GetKey())
	c := change{
		record:    &kvpb.Record{Method: kvpb.Record_METHOD_PUT, RequestId: r.GetRequestId(), Key: r.GetKey(), Value: r.GetValue()},
		op:        clientv3.OpPut(key, string(r.GetValue())),
		otherwise: clientv3.OpGet(key, clientv3.WithKeysOnly()),
	}
	if r.ExpectedRevision != nil {
		c.condition = []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", r.GetExpectedRevision())}
	}
	receipt, found, err := s.apply(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case receipt == nil:
		return nil, status.Errorf(codes.FailedPrecondition, "key %q has revision %d, not %d", r.GetKey(), revisionOf(found), r.GetExpectedRevision())
	}
	return &kvpb.PutResponse{Receipt: receipt}, nil
}

// Append adds to a key's value; see kvpb.KV. Each concurrent append of another caller costs one
// more request.
func (s *Server) Append(ctx context.Context, r *kvpb.AppendRequest) (*kvpb.AppendResponse, error) {
	if err := check(r.GetRequestId(), r.GetKey(), r.GetValue()); err != nil {
		return nil, err
	}
	key := s.space.Data(r.GetKey())
	found, err := s.l.KV().Get(ctx, key)
	if err != nil {
		return nil, answer(err)
	}
	for {
		var value []byte
		if len(found.Kvs) > 0 {
			value = found.Kvs[0].Value
		}
		if value = append(value, r.GetValue()...); len(value) > maxValue {
			return nil, status.Errorf(codes.FailedPrecondition, "the value of key %q would have %d bytes, more than %d", r.GetKey(), len(value), maxValue)
		}
		var receipt *kvpb.Receipt
		// The append applies only to the value that was read. Otherwise it is certain that nothing
		// was applied, and the value is read again. Of concurrent attempts one always succeeds.
		receipt, found, err = s.apply(ctx, change{
			record:    &kvpb.Record{Method: kvpb.Record_METHOD_APPEND, RequestId: r.GetRequestId(), Key: r.GetKey(), Value: r.GetValue()},
			condition: []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", revisionOf(found))},
			op:        clientv3.OpPut(key, string(value)),
			otherwise: clientv3.OpGet(key),
		})
		if err != nil {
			return nil, err
		}
		if receipt != nil {
			return &kvpb.AppendResponse{Receipt: receipt, Length: int64(len(value))}, nil
		}
	}
}

// Delete removes a key; see kvpb.KV.
func (s *Server) Delete(ctx context.Context, r *kvpb.DeleteRequest) (*kvpb.DeleteResponse, error) {
	if err := check(r.GetRequestId(), r.GetKey(), nil); err != nil {
		return nil, err
	}
	key := s.space.Data(r.GetKey())
	receipt, _, err := s.apply(ctx, change{
		record:    &kvpb.Record{Method: kvpb.Record_METHOD_DELETE, RequestId: r.GetRequestId(), Key: r.GetKey()},
		condition: []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), ">", 0)},
		op:        clientv3.OpDelete(key),
		otherwise: clientv3.OpGet(key, clientv3.WithKeysOnly()),
	})
	switch {
	case err != nil:
		return nil, err
	case receipt == nil:
		return nil, missing(r.GetKey())
	}
	return &kvpb.DeleteResponse{Receipt: receipt}, nil
}

// revisionOf is the mod revision of the key that was read, or 0 if the key does not exist.
func revisionOf(found *clientv3.GetResponse) int64 {
	if len(found.Kvs) == 0 {
		return 0
	}
	return found.Kvs[0].ModRevision
}

func missing(key string) error { return status.Errorf(codes.NotFound, "key %q does not exist", key) }
