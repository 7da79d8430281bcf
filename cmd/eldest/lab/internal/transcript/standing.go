package transcript

import (
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// standing are the candidates' keys that are in etcd: those whose last part is the ID of
// their lease.
type standing map[string]bool

// change follows the keys through an atom, and notes in its entries which come and go.
func (s standing) change(a *atom, said []Entry, n *normal) {
	if len(said) == 0 {
		return
	}
	var gained, gone []string
	gain := func(k []byte, lease int64) {
		name := n.text(string(k))
		if lease != 0 && strings.HasSuffix(name, "/"+n.lease(lease)) && !s[name] {
			s[name] = true
			gained = append(gained, name)
		}
	}
	lose := func(matches func(string) bool) {
		for name := range s {
			if matches(name) {
				delete(s, name)
				gone = append(gone, name)
			}
		}
	}
	for _, op := range carriedOut(a) {
		switch {
		case op.put != nil:
			gain(op.put.Key, op.put.Lease)
		case op.remove != nil:
			from, end := n.text(string(op.remove.Key)), n.text(string(op.remove.RangeEnd))
			lose(func(name string) bool { return name == from || end != "" && name >= from && name < end })
		case op.revoke != nil:
			suffix := "/" + n.lease(op.revoke.ID)
			lose(func(name string) bool { return strings.HasSuffix(name, suffix) })
		}
	}
	for _, t := range a.told {
		if t.event.Type == mvccpb.Event_DELETE {
			told := n.text(string(t.event.Kv.GetKey()))
			lose(func(name string) bool { return name == told })
		}
	}
	slices.Sort(gone)
	at := &said[0]
	if a.answer != nil && a.ask != nil {
		at = &said[1]
	}
	at.Gained, at.Gone = gained, gone
}

// operation is one that changed the store.
type operation struct {
	put    *etcdserverpb.PutRequest
	remove *etcdserverpb.DeleteRangeRequest
	revoke *etcdserverpb.LeaseRevokeRequest
}

// carriedOut are the operations of an atom that etcd says were carried out.
func carriedOut(a *atom) []operation {
	if a.ask == nil || a.answer == nil || a.answer.Body == nil {
		return nil
	}
	switch r := a.ask.Body.(type) {
	case *etcdserverpb.PutRequest:
		return []operation{{put: r}}
	case *etcdserverpb.DeleteRangeRequest:
		return []operation{{remove: r}}
	case *etcdserverpb.LeaseRevokeRequest:
		return []operation{{revoke: r}}
	case *etcdserverpb.TxnRequest:
		answer, _ := a.answer.Body.(*etcdserverpb.TxnResponse)
		return branch(r, answer)
	}
	return nil
}

func branch(r *etcdserverpb.TxnRequest, answer *etcdserverpb.TxnResponse) []operation {
	taken := r.Failure
	if answer.GetSucceeded() {
		taken = r.Success
	}
	var done []operation
	for i, op := range taken {
		switch u := op.Request.(type) {
		case *etcdserverpb.RequestOp_RequestPut:
			done = append(done, operation{put: u.RequestPut})
		case *etcdserverpb.RequestOp_RequestDeleteRange:
			done = append(done, operation{remove: u.RequestDeleteRange})
		case *etcdserverpb.RequestOp_RequestTxn:
			if i < len(answer.GetResponses()) {
				done = append(done, branch(u.RequestTxn, answer.Responses[i].GetResponseTxn())...)
			}
		}
	}
	return done
}
