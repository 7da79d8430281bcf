package transcript

import (
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Filter keeps what concerns one election: requests and watches on its keys, leases, notes.
// It is for one goroutine at a time.
type Filter struct {
	prefixes []string
	calls    map[int]bool
	// pending are the creations of watches that are not answered, by call, in order; kept
	// are the watches that concern the election.
	pending map[int][]bool
	kept    map[watchID]bool
}

// watchID is what tells watches apart.
type watchID struct {
	call int
	id   int64
}

// NewFilter keeps what concerns keys that begin with one of the prefixes; without any it
// keeps everything.
func NewFilter(prefixes ...string) *Filter {
	return &Filter{prefixes: prefixes, calls: make(map[int]bool), pending: make(map[int][]bool), kept: make(map[watchID]bool)}
}

// Keep reports whether to show a message. It must be told all, in order.
func (f *Filter) Keep(m wiretap.Message) bool {
	if len(f.prefixes) == 0 || m.Kind == wiretap.Note {
		return true
	}
	if m.Kind == wiretap.Request {
		if w, ok := m.Body.(*etcdserverpb.WatchRequest); ok {
			return f.watchRequest(m.Call, w)
		}
		f.calls[m.Call] = f.calls[m.Call] || f.concerns(m)
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
func (f *Filter) concerns(m wiretap.Message) bool {
	switch r := m.Body.(type) {
	case *etcdserverpb.RangeRequest:
		return f.touches(r.Key, r.RangeEnd)
	case *etcdserverpb.PutRequest:
		return f.touches(r.Key, nil)
	case *etcdserverpb.DeleteRangeRequest:
		return f.touches(r.Key, r.RangeEnd)
	case *etcdserverpb.TxnRequest:
		return f.txn(r)
	case *etcdserverpb.LeaseGrantRequest, *etcdserverpb.LeaseRevokeRequest,
		*etcdserverpb.LeaseKeepAliveRequest, *etcdserverpb.LeaseTimeToLiveRequest:
		return true
	}
	return false
}

func (f *Filter) txn(r *etcdserverpb.TxnRequest) bool {
	for _, c := range r.Compare {
		if f.touches(c.Key, c.RangeEnd) {
			return true
		}
	}
	for _, branch := range [][]*etcdserverpb.RequestOp{r.Success, r.Failure} {
		for _, op := range branch {
			if t := op.GetRequestTxn(); t != nil && f.txn(t) ||
				op.GetRequestRange() != nil && f.touches(op.GetRequestRange().Key, op.GetRequestRange().RangeEnd) ||
				op.GetRequestPut() != nil && f.touches(op.GetRequestPut().Key, nil) ||
				op.GetRequestDeleteRange() != nil && f.touches(op.GetRequestDeleteRange().Key, op.GetRequestDeleteRange().RangeEnd) {
				return true
			}
		}
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
