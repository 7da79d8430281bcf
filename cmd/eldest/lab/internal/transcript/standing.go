package transcript

import (
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// standing are the candidates' keys in etcd: those whose last part is the ID of their lease.
type standing map[string]bool

// change applies an atom to the keys, and records in its entries which keys come and go.
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
	for _, request := range carriedOut(requestOf(a), answerOf(a)) {
		switch r := request.(type) {
		case *etcdserverpb.PutRequest:
			gain(r.Key, r.Lease)
		case *etcdserverpb.DeleteRangeRequest:
			from, end := n.text(string(r.Key)), n.text(string(r.RangeEnd))
			lose(func(name string) bool { return name == from || end != "" && name >= from && name < end })
		case *etcdserverpb.LeaseRevokeRequest:
			suffix := "/" + n.lease(r.ID)
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

// carriedOut returns the requests that were carried out, according to etcd's answer: one, or those
// of the executed branch of a transaction.
func carriedOut(request, answer proto.Message) []proto.Message {
	if request == nil || answer == nil {
		return nil
	}
	r, isTxn := request.(*etcdserverpb.TxnRequest)
	if !isTxn {
		return []proto.Message{request}
	}
	outcome, _ := answer.(*etcdserverpb.TxnResponse)
	taken := r.Failure
	if outcome.GetSucceeded() {
		taken = r.Success
	}
	var done []proto.Message
	for i, op := range taken[:min(len(taken), len(outcome.GetResponses()))] {
		done = append(done, carriedOut(inside(op), inside(outcome.Responses[i]))...)
	}
	return done
}
