package sim

import (
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// confirmation is the question that only Eldest asks: whether a majority stands behind
// a renewal.
const confirmation = "confirmation"

// replies are the ones a step can lose.
var replies = []string{"grant", "registration", "write", "renewal", confirmation, "departure", "read"}

// replyMatcher tells the requests whose reply is to be lost. Renewals are
// streamed, so there it is the reply itself that is looked at.
func replyMatcher(reply string) func(method string, m any) bool {
	return func(method string, m any) bool {
		switch m := m.(type) {
		case *pb.LeaseKeepAliveResponse:
			return reply == "renewal"
		case *pb.LeaseGrantRequest:
			return reply == "grant"
		case *pb.MemberListRequest: // the majority is asked about a renewal
			return reply == confirmation
		case *pb.RangeRequest:
			return reply == "read" && strings.HasPrefix(string(m.Key), prefix)
		case *pb.DeleteRangeRequest:
			return reply == "departure" && strings.HasPrefix(string(m.Key), prefix)
		case *pb.LeaseRevokeRequest:
			return reply == "departure"
		case *pb.TxnRequest:
			switch reply {
			case "registration":
				return puts(m, func(key string) bool { return strings.HasPrefix(key, prefix) })
			case "write":
				return puts(m, func(key string) bool { return key == dataKey })
			case mailbox:
				return puts(m, func(key string) bool { return strings.HasPrefix(key, mailboxes) })
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
