package sim

import (
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// points are the requests at which a process can be stopped: just before one leaves,
// or when its reply is there and nobody has seen it. Together they are every place at
// which an election waits for the server, and so every place at which it can be
// overtaken.
var points = []string{"grant", "registration", "read", "watch", "renewal", confirmation, "write", "departure"}

// pointMatcher tells the requests of a point. Streams pass with each message, replies
// with theirs; unary requests pass twice with the request.
func pointMatcher(point string) func(method string, m any) bool {
	asReply := replyMatcher(point)
	return func(method string, m any) bool {
		switch m := m.(type) {
		case *pb.LeaseKeepAliveRequest, *pb.LeaseKeepAliveResponse:
			return point == "renewal"
		case *pb.WatchRequest:
			return point == "watch" && m.GetCreateRequest() != nil
		case *pb.WatchResponse:
			return point == "watch" && deletion(m)
		default:
			return asReply(method, m)
		}
	}
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
