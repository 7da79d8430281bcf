package memetcd

import (
	"bytes"
	"cmp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// mostOps is etcd's default of the operations, or compares, of one transaction.
const mostOps = 128

// txn carries out a transaction: all of it, or nothing. The caller holds the mutex.
func (e *Etcd) txn(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := checkTxn(r, mostOps); err != nil {
		return nil, err
	}
	_, then := checkOnce(r.Success)
	_, otherwise := checkOnce(r.Failure)
	if err := cmp.Or(then, otherwise); err != nil {
		return nil, err
	}
	resp, err := e.carryOut(e.plan(r))
	if err != nil {
		e.undo()
	}
	return resp, err
}

// checkTxn refuses what is wrong whatever the store contains. most is the number of operations that
// are left for this transaction.
func checkTxn(r *pb.TxnRequest, most int) error {
	n := max(len(r.Compare), len(r.Success), len(r.Failure))
	if n > most {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.Compare {
		if len(c.Key) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if err := checkOp(op, most-n); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOp(op *pb.RequestOp, most int) error {
	switch op := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return checkRange(op.RequestRange)
	case *pb.RequestOp_RequestPut:
		return checkPut(op.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return checkDelete(op.RequestDeleteRange)
	case *pb.RequestOp_RequestTxn:
		return checkTxn(op.RequestTxn, most)
	default:
		return rpctypes.ErrGRPCKeyNotFound
	}
}

// writes are the keys that operations may put, and the ranges that they may delete.
type writes struct {
	puts map[string]bool
	dels []*pb.DeleteRangeRequest
}

// collides reports whether the key is written more than once. The keys in except may be put again.
func (w *writes) collides(key string, except map[string]bool) bool {
	if w.puts[key] && !except[key] {
		return true
	}
	for _, d := range w.dels {
		// As etcd, which does not find the keys of a deletion to the end of all keys.
		if end := string(d.RangeEnd); end != "\x00" && within(key, string(d.Key), end) {
			return true
		}
	}
	return false
}

// checkOnce refuses operations that write a key twice: deletions are compared with puts of the same
// transaction and of those in it, and the two branches of one transaction exclude each other.
func checkOnce(ops []*pb.RequestOp) (w writes, err error) {
	w.puts = map[string]bool{}
	for _, op := range ops {
		if d := op.GetRequestDeleteRange(); d != nil {
			w.dels = append(w.dels, d)
		}
	}
	for _, op := range ops {
		inner := op.GetRequestTxn()
		if inner == nil {
			continue
		}
		var branches [2]writes
		for i, ops := range [][]*pb.RequestOp{inner.Success, inner.Failure} {
			if branches[i], err = checkOnce(ops); err != nil {
				return w, err
			}
		}
		for i, except := range []map[string]bool{nil, branches[0].puts} {
			for key := range branches[i].puts {
				if w.collides(key, except) {
					return w, rpctypes.ErrGRPCDuplicateKey
				}
			}
			for key := range branches[i].puts {
				w.puts[key] = true
			}
		}
		w.dels = append(append(w.dels, branches[0].dels...), branches[1].dels...)
	}
	for _, op := range ops {
		if p := op.GetRequestPut(); p != nil {
			if w.collides(string(p.Key), nil) {
				return w, rpctypes.ErrGRPCDuplicateKey
			}
			w.puts[string(p.Key)] = true
		}
	}
	return w, nil
}

// plan is a transaction whose compares were evaluated: all of them, also those of transactions in
// it, before anything is changed.
type plan struct {
	holds bool
	ops   []*pb.RequestOp
	inner map[int]plan // by the index in ops
}

func (e *Etcd) plan(r *pb.TxnRequest) plan {
	p := plan{holds: true, inner: map[int]plan{}}
	for _, c := range r.Compare {
		p.holds = p.holds && e.compare(c)
	}
	if p.ops = r.Failure; p.holds {
		p.ops = r.Success
	}
	for i, op := range p.ops {
		if inner := op.GetRequestTxn(); inner != nil {
			p.inner[i] = e.plan(inner)
		}
	}
	return p
}

// carryOut carries out a plan, up to the first operation that fails.
func (e *Etcd) carryOut(p plan) (*pb.TxnResponse, error) {
	resp := &pb.TxnResponse{Succeeded: p.holds}
	for i, op := range p.ops {
		var err error
		r := &pb.ResponseOp{}
		switch op := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			got := &pb.ResponseOp_ResponseRange{}
			got.ResponseRange, err = e.get(op.RequestRange)
			r.Response = got
		case *pb.RequestOp_RequestPut:
			put := &pb.ResponseOp_ResponsePut{}
			put.ResponsePut, err = e.put(op.RequestPut)
			r.Response = put
		case *pb.RequestOp_RequestDeleteRange:
			deleted := &pb.ResponseOp_ResponseDeleteRange{}
			deleted.ResponseDeleteRange, err = e.remove(op.RequestDeleteRange)
			r.Response = deleted
		case *pb.RequestOp_RequestTxn:
			inner := &pb.ResponseOp_ResponseTxn{}
			if inner.ResponseTxn, err = e.carryOut(p.inner[i]); err == nil {
				inner.ResponseTxn.Header = &pb.ResponseHeader{} // as etcd
			}
			r.Response = inner
		}
		if err != nil {
			return nil, err
		}
		resp.Responses = append(resp.Responses, r)
	}
	resp.Header = e.header()
	return resp, nil
}

// compare reports whether a compare holds for all keys of its range. A key that does not exist has
// zeros, and no value.
func (e *Etcd) compare(c *pb.Compare) bool {
	kvs := e.between(c.Key, c.RangeEnd, 0)
	if len(kvs) == 0 {
		return c.Target != pb.Compare_VALUE && holds(c, &mvccpb.KeyValue{})
	}
	for _, kv := range kvs {
		if !holds(c, kv) {
			return false
		}
	}
	return true
}

func holds(c *pb.Compare, kv *mvccpb.KeyValue) bool {
	var result int
	switch c.Target {
	case pb.Compare_VALUE:
		result = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		result = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		result = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_VERSION:
		result = cmp.Compare(kv.Version, c.GetVersion())
	case pb.Compare_LEASE:
		result = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return result == 0
	case pb.Compare_NOT_EQUAL:
		return result != 0
	case pb.Compare_GREATER:
		return result > 0
	default:
		return result < 0
	}
}
