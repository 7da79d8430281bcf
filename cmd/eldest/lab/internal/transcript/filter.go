package transcript

import (
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Filter keeps the messages of one election: requests and watches on its keys, leases, notes. It is
// not safe for concurrent use.
type Filter struct {
	prefixes []string
	calls    map[int]bool
	// pending are the creations of watches without an answer, by call, in order; kept are the
	// watches of the election.
	pending map[int][]bool
	kept    map[watchID]bool
}

// watchID identifies a watch.
type watchID struct {
	call int
	id   int64
}

// NewFilter keeps messages about keys that begin with one of the prefixes; without prefixes it
// keeps everything.
func NewFilter(prefixes ...string) *Filter {
	return &Filter{prefixes: prefixes, calls: make(map[int]bool), pending: make(map[int][]bool), kept: make(map[watchID]bool)}
}

// Keep reports whether to show a message. It must be called with all messages, in order.
func (f *Filter) Keep(m wiretap.Message) bool {
	if len(f.prefixes) == 0 || m.Kind == wiretap.Note {
		return true
	}
	if m.Kind == wiretap.Request {
		if w, ok := m.Body.(*etcdserverpb.WatchRequest); ok {
			return f.watchRequest(m.Call, w)
		}
		f.calls[m.Call] = f.calls[m.Call] || f.concerns(m.Body)
		return f.calls[m.Call]
	}
	if w, ok := m.Body.(*etcdserverpb.WatchResponse); ok {
		return f.watchAnswer(m.Call, w)
	}
	keep := f.calls[m.Call]
	if !m.Stream || m.Kind == wiretap.End {
		delete(f.calls, m.Call)
	}
	return keep
}

func (f *Filter) touches(from, end []byte) bool {
	return slices.ContainsFunc(f.prefixes, func(prefix string) bool { return touches(from, end, prefix) })
}

// concerns reports whether a request is about the election's keys, or a lease.
func (f *Filter) concerns(request proto.Message) bool {
	switch r := request.(type) {
	case *etcdserverpb.RangeRequest:
		return f.touches(r.Key, r.RangeEnd)
	case *etcdserverpb.PutRequest:
		return f.touches(r.Key, nil)
	case *etcdserverpb.DeleteRangeRequest:
		return f.touches(r.Key, r.RangeEnd)
	case *etcdserverpb.TxnRequest:
		return slices.ContainsFunc(r.Compare, func(c *etcdserverpb.Compare) bool { return f.touches(c.Key, c.RangeEnd) }) ||
			slices.ContainsFunc(slices.Concat(r.Success, r.Failure), func(op *etcdserverpb.RequestOp) bool { return f.concerns(inside(op)) })
	case *etcdserverpb.LeaseGrantRequest, *etcdserverpb.LeaseRevokeRequest,
		*etcdserverpb.LeaseKeepAliveRequest, *etcdserverpb.LeaseTimeToLiveRequest:
		return true
	}
	return false
}

func (f *Filter) watchRequest(call int, w *etcdserverpb.WatchRequest) bool {
	switch u := w.RequestUnion.(type) {
	case *etcdserverpb.WatchRequest_CreateRequest:
		keep := f.touches(u.CreateRequest.Key, u.CreateRequest.RangeEnd)
		f.pending[call] = append(f.pending[call], keep)
		f.calls[call] = f.calls[call] || keep
		return keep
	case *etcdserverpb.WatchRequest_CancelRequest:
		return f.kept[watchID{call, u.CancelRequest.WatchId}]
	}
	return false
}

func (f *Filter) watchAnswer(call int, w *etcdserverpb.WatchResponse) bool {
	id := watchID{call, w.WatchId}
	if w.Created && len(f.pending[call]) > 0 {
		f.kept[id] = f.pending[call][0]
		f.pending[call] = f.pending[call][1:]
	}
	keep := f.kept[id]
	if w.Canceled {
		delete(f.kept, id)
	}
	return keep
}
