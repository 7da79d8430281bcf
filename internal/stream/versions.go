package stream

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// From 3.7 on, the client has the types of etcd's messages where it had types of its own, and
// pointers to messages where it had values. The conversions in this file compile with both.

// eventsOf converts the events of etcd's message to the client's.
func eventsOf(events []*mvccpb.Event) []*clientv3.Event {
	if same, ok := any(events).([]*clientv3.Event); ok {
		return same
	}
	converted := make([]*clientv3.Event, len(events))
	for i, e := range events {
		converted[i] = (*clientv3.Event)(e) //nolint:unconvert // before 3.7 they are two types
	}
	return converted
}

// messagesOf converts the client's events to those of etcd's message.
func messagesOf(events []*clientv3.Event) []*mvccpb.Event {
	if same, ok := any(events).([]*mvccpb.Event); ok {
		return same
	}
	converted := make([]*mvccpb.Event, len(events))
	for i, e := range events {
		converted[i] = (*mvccpb.Event)(e) //nolint:unconvert // before 3.7 they are two types
	}
	return converted
}

// headerOf returns the header of the client's response.
func headerOf(resp *clientv3.WatchResponse) *pb.ResponseHeader {
	switch header := any(&resp.Header).(type) {
	case **pb.ResponseHeader:
		return *header
	case *pb.ResponseHeader:
		return header
	default:
		return nil
	}
}
