package sim

import (
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// confirmation is the question that only Eldest asks: whether a majority stands behind
// a renewal.
const confirmation = "confirmation"

// replies are the ones a step can lose.
var replies = []string{"grant", "registration", "write", "renewal", confirmation, "departure", "read"}

// points are the requests at which a process can be stopped: just before one leaves,
// or when its reply is there and nobody has seen it. Together they are every place at
// which an election waits for the server, and so every place at which it can be
// overtaken.
var points = []string{"grant", "registration", "read", "watch", "renewal", confirmation, "write", "departure"}

// matcher tells the requests of a point. Streams pass with each message, replies
// with theirs; unary requests pass twice with the request.
func matcher(point string) func(method string, m any) bool {
	return func(method string, m any) bool {
		switch m := m.(type) {
		case *pb.LeaseKeepAliveRequest, *pb.LeaseKeepAliveResponse:
			return point == "renewal"
		case *pb.WatchRequest:
			return point == "watch" && m.GetCreateRequest() != nil
		case *pb.WatchResponse:
			return point == "watch" && deletion(m)
		case *pb.LeaseGrantRequest:
			return point == "grant"
		case *pb.MemberListRequest: // the majority is asked about a renewal
			return point == confirmation
		case *pb.RangeRequest:
			return point == "read" && strings.HasPrefix(string(m.Key), prefix)
		case *pb.PutRequest:
			return point == beat && strings.HasPrefix(string(m.Key), beats)
		case *pb.DeleteRangeRequest:
			return point == "departure" && strings.HasPrefix(string(m.Key), prefix)
		case *pb.LeaseRevokeRequest:
			return point == "departure"
		case *pb.TxnRequest:
			switch point {
			case "registration":
				return puts(m, func(key string) bool { return strings.HasPrefix(key, prefix) })
			case "write":
				return puts(m, func(key string) bool { return key == dataKey })
			case mailbox:
				return puts(m, func(key string) bool { return strings.HasPrefix(key, mailboxes) })
			case eviction:
				return evicts(m)
			case "departure":
				return deletes(m)
			}
		}
		return false
	}
}

// puts looks for a put in the branch that is taken when the compares hold, at
// any depth: guarded transactions are nested.
func puts(m *pb.TxnRequest, match func(key string) bool) bool {
	for _, op := range m.Success {
		if p := op.GetRequestPut(); p != nil && match(string(p.Key)) {
			return true
		}
		if t := op.GetRequestTxn(); t != nil && puts(t, match) {
			return true
		}
	}
	return false
}

// deletes looks for the deletion of a candidate.
func deletes(m *pb.TxnRequest) bool {
	for _, op := range m.Success {
		if d := op.GetRequestDeleteRange(); d != nil && strings.HasPrefix(string(d.Key), prefix) {
			return true
		}
	}
	return false
}

// evicts looks for the deletion of another candidate, whose heartbeat is compared.
func evicts(m *pb.TxnRequest) bool {
	return slices.ContainsFunc(m.Compare, func(c *pb.Compare) bool { return strings.HasPrefix(string(c.Key), beats) })
}

// deletion looks for a candidate's deletion among the events: the news on which the
// next one acts.
func deletion(m *pb.WatchResponse) bool {
	for _, ev := range m.Events {
		if ev.Type == mvccpb.Event_DELETE && strings.HasPrefix(string(ev.Kv.Key), prefix) {
			return true
		}
	}
	return false
}
