package transcript

import (
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// request returns the parts of a request about keys.
func (n *names) request(body proto.Message) []string {
	var said phrases
	switch r := body.(type) {
	case *etcdserverpb.RangeRequest:
		said = n.rangeRequest(r)
	case *etcdserverpb.PutRequest:
		said = phrases{n.key(r.Key) + " = " + n.value(r.Value)}
		said.add(r.Lease != 0, "lease %s", n.lease(r.Lease))
		said.add(r.PrevKv, "with previous value")
		said.add(r.IgnoreValue, "value unchanged")
		said.add(r.IgnoreLease, "lease unchanged")
	case *etcdserverpb.DeleteRangeRequest:
		said = phrases{n.keys(r.Key, r.RangeEnd)}
		said.add(r.PrevKv, "with previous value")
	case *etcdserverpb.TxnRequest:
		return n.txnRequest(r)
	default:
		return nil
	}
	return []string{said.String()}
}

func (n *names) rangeRequest(r *etcdserverpb.RangeRequest) phrases {
	said := phrases{n.keys(r.Key, r.RangeEnd)}
	said.add(r.Revision != 0, "at %s", n.revision(r.Revision))
	by := "by " + strings.ToLower(r.SortTarget.String())
	switch {
	case r.SortOrder != etcdserverpb.RangeRequest_NONE:
		said.add(true, "%s %sing", by, strings.ToLower(r.SortOrder.String()))
	case r.SortTarget != etcdserverpb.RangeRequest_KEY:
		said.add(true, "%s", by)
	}
	said.add(r.Limit != 0, "limit %d", r.Limit)
	said.add(r.MinCreateRevision != 0, "create at least %s", n.revision(r.MinCreateRevision))
	said.add(r.MaxCreateRevision != 0, "create at most %s", n.revision(r.MaxCreateRevision))
	said.add(r.MinModRevision != 0, "mod at least %s", n.revision(r.MinModRevision))
	said.add(r.MaxModRevision != 0, "mod at most %s", n.revision(r.MaxModRevision))
	said.add(r.KeysOnly, "keys only")
	said.add(r.CountOnly, "count only")
	said.add(r.Serializable, "serializable")
	return said
}

// txnRequest returns a part for all compares, and one for each operation.
func (n *names) txnRequest(r *etcdserverpb.TxnRequest) []string {
	var parts []string
	if len(r.Compare) > 0 {
		var compares []string
		for _, c := range r.Compare {
			compares = append(compares, n.compare(c))
		}
		parts = append(parts, "If "+strings.Join(compares, " and "))
	}
	branch := func(word string, ops []*etcdserverpb.RequestOp) {
		for _, op := range ops {
			body := inside(op)
			parts = append(parts, word+operation(body, n.request(body)))
			word = ""
		}
	}
	branch("Then ", r.Success)
	branch("Else ", r.Failure)
	return parts
}

// inside returns the request or the answer in an operation of a transaction: the same message as that
// of a separate call. It is nil if there is none.
func inside(op proto.Message) proto.Message {
	m := op.ProtoReflect()
	held := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if held == nil {
		return nil
	}
	return m.Get(held).Message().Interface()
}

// operation returns the text of an operation in a transaction, or of its result, from its parts.
func operation(body proto.Message, parts []string) string {
	verb := "nothing"
	switch body.(type) {
	case *etcdserverpb.TxnRequest, *etcdserverpb.TxnResponse:
		return "Txn (" + joined(parts) + ")"
	case *etcdserverpb.RangeRequest, *etcdserverpb.RangeResponse:
		verb = "Range"
	case *etcdserverpb.PutRequest, *etcdserverpb.PutResponse:
		verb = "Put"
	case *etcdserverpb.DeleteRangeRequest, *etcdserverpb.DeleteRangeResponse:
		verb = "Delete"
	}
	if len(parts) == 0 {
		return verb
	}
	if verb += " " + parts[0]; len(parts) > 1 {
		verb += ": " + strings.Join(parts[1:], ", ")
	}
	return verb
}

// signs are the operators of compares.
var signs = map[etcdserverpb.Compare_CompareResult]string{
	etcdserverpb.Compare_EQUAL: "=", etcdserverpb.Compare_NOT_EQUAL: "≠",
	etcdserverpb.Compare_GREATER: ">", etcdserverpb.Compare_LESS: "<",
}

func (n *names) compare(c *etcdserverpb.Compare) string {
	with := "0" // a revision of a key that does not exist
	switch created, changed := c.GetCreateRevision(), c.GetModRevision(); {
	case created != 0:
		with = n.revision(created)
	case changed != 0:
		with = n.revision(changed)
	case c.Target == etcdserverpb.Compare_VERSION:
		with = fmt.Sprint(c.GetVersion())
	case c.Target == etcdserverpb.Compare_VALUE:
		with = n.value(c.GetValue())
	case c.Target == etcdserverpb.Compare_LEASE:
		with = n.lease(c.GetLease())
	}
	return fmt.Sprintf("%s(%s) %s %s", strings.ToLower(c.Target.String()), n.keys(c.Key, c.RangeEnd), signs[c.Result], with)
}

// answer returns the parts of an answer about keys, without the store's revision.
func (n *names) answer(body proto.Message) []string {
	var parts []string
	switch r := body.(type) {
	case *etcdserverpb.RangeResponse:
		parts = []string{found(r)}
		for _, kv := range r.Kvs {
			parts = append(parts, n.keyValue(kv))
		}
	case *etcdserverpb.DeleteRangeResponse:
		parts = []string{fmt.Sprintf("%d deleted", r.Deleted)}
		for _, kv := range r.PrevKvs {
			parts = append(parts, "was "+n.keyValue(kv))
		}
	case *etcdserverpb.PutResponse:
		if r.PrevKv != nil {
			parts = []string{"was " + n.keyValue(r.PrevKv)}
		}
	case *etcdserverpb.TxnResponse:
		parts = []string{"else"}
		if r.Succeeded {
			parts[0] = "then"
		}
		for _, op := range r.Responses {
			result := inside(op)
			parts = append(parts, operation(result, n.answer(result)))
		}
	}
	return parts
}

// found returns how many keys a read returned, and how many there are.
func found(r *etcdserverpb.RangeResponse) string {
	switch returned := int64(len(r.Kvs)); {
	case r.Count > returned:
		return fmt.Sprintf("%d of %d keys", returned, r.Count)
	case returned == 0:
		return "no key"
	case returned == 1:
		return "1 key"
	default:
		return fmt.Sprintf("%d keys", returned)
	}
}

// keyValue returns a key with the fields that are set.
func (n *names) keyValue(kv *mvccpb.KeyValue) string {
	text := n.key(kv.GetKey())
	if len(kv.GetValue()) > 0 {
		text += " = " + n.value(kv.GetValue())
	}
	created, changed := kv.GetCreateRevision(), kv.GetModRevision()
	if created != 0 {
		text += " create " + n.revision(created)
	}
	if changed != 0 && changed != created {
		text += " mod " + n.revision(changed)
	}
	if kv.GetLease() != 0 {
		text += " lease " + n.lease(kv.GetLease())
	}
	return text
}

// keys returns a key, or a range of keys by its ends.
func (n *names) keys(key, end []byte) string {
	switch string(end) {
	case "":
		return n.key(key)
	case "\x00":
		if string(key) == "\x00" {
			return "all keys"
		}
		return "keys from " + n.key(key)
	case clientv3.GetPrefixRangeEnd(string(key)):
		return "prefix " + n.key(key)
	}
	return "keys from " + n.key(key) + " to " + n.key(end)
}
