package sim

import (
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// confirmation is a request that only Eldest makes: to confirm that a majority has the leader that
// answered a renewal.
const confirmation = "confirmation"

// replies are the replies that a step can lose.
var replies = []string{"grant", "registration", "write", "renewal", confirmation, "departure", "read"}

// points are the requests at which a process can be stopped: just before one is sent, or when its
// reply has arrived and has not been processed. Together they are all places at which an election
// waits for the server, and so all places at which other events can overtake it.
var points = []string{"grant", "registration", "read", "watch", "renewal", confirmation, "write", "departure"}

// matcher matches the requests of a point. Streams pass each message, and for replies the received
// message; unary calls pass the request, both before the call and after it.
func matcher(point string) func(method string, m any) bool {
	return func(_ string, m any) bool {
		is, all := map[string]bool{}, prefix
		switch m := m.(type) {
		case *pb.LeaseKeepAliveRequest, *pb.LeaseKeepAliveResponse:
			is["renewal"] = true
		case *pb.WatchRequest:
			is["watch"] = m.GetCreateRequest() != nil
		case *pb.WatchResponse: // the event to which the next candidate reacts
			is["watch"] = slices.ContainsFunc(m.Events, func(e *mvccpb.Event) bool {
				return e.Type == mvccpb.Event_DELETE && strings.HasPrefix(string(e.Kv.Key), all)
			})
		case *pb.LeaseGrantRequest:
			is["grant"] = true
		case *pb.MemberListRequest: // a majority confirms a renewal
			is[confirmation] = true
		case *pb.RangeRequest:
			is["read"] = strings.HasPrefix(string(m.Key), all)
		case *pb.PutRequest:
			is[beat] = strings.HasPrefix(string(m.Key), beats)
		case *pb.DeleteRangeRequest:
			is["departure"] = strings.HasPrefix(string(m.Key), all)
		case *pb.LeaseRevokeRequest:
			is["departure"] = true
		case *pb.TxnRequest:
			is["registration"] = puts(m, prefix)
			is["write"] = puts(m, dataKey)
			is[mailbox] = puts(m, mailboxes)
			is["departure"] = slices.ContainsFunc(m.Success, func(op *pb.RequestOp) bool {
				return strings.HasPrefix(string(op.GetRequestDeleteRange().GetKey()), all)
			})
			// The deletion of another candidate, whose heartbeat is compared.
			is[eviction] = slices.ContainsFunc(m.Compare, func(c *pb.Compare) bool { return strings.HasPrefix(string(c.Key), beats) })
		}
		return is[point]
	}
}

// puts reports whether there is a put in the branch that is taken when the compares hold, at any
// depth: guarded transactions are nested.
func puts(m *pb.TxnRequest, of string) bool {
	return slices.ContainsFunc(m.GetSuccess(), func(op *pb.RequestOp) bool {
		return strings.HasPrefix(string(op.GetRequestPut().GetKey()), of) || puts(op.GetRequestTxn(), of)
	})
}
