package transcript

import (
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Filter keeps the messages of one election: requests and watches on its keys, leases, notes. It is
// not safe for concurrent use.
type Filter struct {
	prefixes []span
	calls    calls
	kept     map[int]bool // the calls with a request that was kept, until they end
}

// NewFilter keeps messages about keys that begin with one of the prefixes; without prefixes it keeps
// everything.
func NewFilter(prefixes ...string) *Filter {
	f := &Filter{kept: map[int]bool{}}
	for _, p := range prefixes {
		f.prefixes = append(f.prefixes, newSpan([]byte(p), []byte(clientv3.GetPrefixRangeEnd(p))))
	}
	return f
}

// Keep reports whether to show a message. It must be called with all messages, in order.
func (f *Filter) Keep(m wiretap.Message) bool {
	if len(f.prefixes) == 0 || m.Kind == wiretap.Note {
		return true
	}
	request := f.calls.request(&m)
	keep := request != nil && f.concerns(request.Body)
	switch {
	case m.Kind == wiretap.Request && keep:
		f.kept[m.Call] = true
	case m.Kind == wiretap.End:
		keep = f.kept[m.Call]
		delete(f.kept, m.Call)
	case m.Kind == wiretap.Answer && !m.Stream:
		delete(f.kept, m.Call) // no end follows
	}
	return keep
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
	case *etcdserverpb.WatchRequest:
		return f.touches(r.GetCreateRequest().GetKey(), r.GetCreateRequest().GetRangeEnd())
	case *etcdserverpb.TxnRequest:
		return slices.ContainsFunc(r.Compare, func(c *etcdserverpb.Compare) bool { return f.touches(c.Key, c.RangeEnd) }) ||
			slices.ContainsFunc(slices.Concat(r.Success, r.Failure), func(op *etcdserverpb.RequestOp) bool { return f.concerns(inside(op)) })
	case *etcdserverpb.LeaseGrantRequest, *etcdserverpb.LeaseRevokeRequest,
		*etcdserverpb.LeaseKeepAliveRequest, *etcdserverpb.LeaseTimeToLiveRequest:
		return true
	}
	return false
}

func (f *Filter) touches(key, end []byte) bool {
	return slices.ContainsFunc(f.prefixes, newSpan(key, end).overlaps)
}

// span is a range of keys: from, and below end. An end of "" means no limit.
type span struct{ from, end string }

// newSpan returns the range that a request names by a key and the end of a range.
func newSpan(key, end []byte) span {
	switch string(end) {
	case "":
		return span{string(key), string(key) + "\x00"}
	case "\x00":
		return span{string(key), ""}
	}
	return span{string(key), string(end)}
}

func (s span) overlaps(o span) bool {
	return (o.end == "" || s.from < o.end) && (s.end == "" || o.from < s.end)
}

func (s span) contains(key string) bool { return s.overlaps(newSpan([]byte(key), nil)) }
