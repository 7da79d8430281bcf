package transcript

import (
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// standing are the candidates' keys in etcd, oldest first: those whose last part is their lease.
type standing []string

// change applies a group to the keys, and returns the names of those that it created and deleted.
func (s *standing) change(g *group, name func(string) string) (gained, gone []string) {
	remove := func(matches func(key string) bool) {
		*s = slices.DeleteFunc(*s, func(key string) bool {
			if matches(key) {
				gone = append(gone, name(key))
				return true
			}
			return false
		})
	}
	for _, request := range carriedOut(g.request(), g.answer()) {
		switch r := request.(type) {
		case *etcdserverpb.PutRequest:
			if key := string(r.Key); strings.HasSuffix(key, lastPart(r.Lease)) && !slices.Contains(*s, key) {
				*s, gained = append(*s, key), append(gained, name(key))
			}
		case *etcdserverpb.DeleteRangeRequest:
			remove(newSpan(r.Key, r.RangeEnd).contains)
		case *etcdserverpb.LeaseRevokeRequest:
			remove(func(key string) bool { return strings.HasSuffix(key, lastPart(r.ID)) })
		}
	}
	for _, e := range g.events {
		if e.Type == mvccpb.Event_DELETE && g.rank == 0 { // not from the past
			remove(func(key string) bool { return key == string(e.Kv.GetKey()) })
		}
	}
	return gained, gone
}

// lastPart returns the last part of the keys of a lease's candidates.
func lastPart(lease int64) string { return "/" + unchanged.lease(lease) }

// carriedOut returns the requests that were carried out, as etcd's answer says: one, or those of the
// executed branch of a transaction.
func carriedOut(request, answer proto.Message) []proto.Message {
	txn, isTxn := request.(*etcdserverpb.TxnRequest)
	switch {
	case request == nil || answer == nil:
		return nil
	case !isTxn:
		return []proto.Message{request}
	}
	outcome, _ := answer.(*etcdserverpb.TxnResponse)
	ops := txn.Failure
	if outcome.GetSucceeded() {
		ops = txn.Success
	}
	var done []proto.Message
	for i, op := range ops[:min(len(ops), len(outcome.GetResponses()))] {
		done = append(done, carriedOut(inside(op), inside(outcome.Responses[i]))...)
	}
	return done
}

// changes reports whether a request made a new revision, as its answer says.
func changes(answer proto.Message) bool {
	switch a := answer.(type) {
	case *etcdserverpb.PutResponse:
		return true
	case *etcdserverpb.DeleteRangeResponse:
		return a.Deleted > 0
	case *etcdserverpb.TxnResponse:
		return slices.ContainsFunc(a.Responses, func(op *etcdserverpb.ResponseOp) bool { return changes(inside(op)) })
	}
	return false
}
