package transcript

import (
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// sayTxn formats a transaction: a part for each operation, and one for all compares.
func sayTxn(r *etcdserverpb.TxnRequest, n names) []string {
	var parts []string
	if len(r.Compare) > 0 {
		compares := make([]string, len(r.Compare))
		for i, c := range r.Compare {
			compares[i] = sayCompare(c, n)
		}
		parts = append(parts, "If "+strings.Join(compares, " and "))
	}
	parts = append(parts, sayBranch("Then ", r.Success, n)...)
	return append(parts, sayBranch("Else ", r.Failure, n)...)
}

func sayBranch(word string, ops []*etcdserverpb.RequestOp, n names) []string {
	parts := make([]string, len(ops))
	for i, op := range ops {
		parts[i] = sayOp(op, n)
		if i == 0 {
			parts[i] = word + parts[i]
		}
	}
	return parts
}

func sayOp(op *etcdserverpb.RequestOp, n names) string {
	switch r := inside(op).(type) {
	case *etcdserverpb.RangeRequest:
		return "Range " + sayRange(r, n)
	case *etcdserverpb.PutRequest:
		return "Put " + sayPut(r, n)
	case *etcdserverpb.DeleteRangeRequest:
		return "Delete " + sayDelete(r, n)
	case *etcdserverpb.TxnRequest:
		return "Txn (" + Entry{Parts: sayTxn(r, n)}.Text() + ")"
	}
	return "nothing"
}

// signs are the operators of compares.
var signs = map[etcdserverpb.Compare_CompareResult]string{
	etcdserverpb.Compare_EQUAL: " = ", etcdserverpb.Compare_NOT_EQUAL: " ≠ ",
	etcdserverpb.Compare_GREATER: " > ", etcdserverpb.Compare_LESS: " < ",
}

func sayCompare(c *etcdserverpb.Compare, n names) string {
	of, with := "version", ""
	rev := func(r int64) string {
		if r == 0 {
			return "0" // the key does not exist
		}
		return n.rev(r)
	}
	switch t := c.TargetUnion.(type) {
	case *etcdserverpb.Compare_CreateRevision:
		of, with = "create", rev(t.CreateRevision)
	case *etcdserverpb.Compare_ModRevision:
		of, with = "mod", rev(t.ModRevision)
	case *etcdserverpb.Compare_Version:
		with = decimal(t.Version)
	case *etcdserverpb.Compare_Value:
		of, with = "value", value(t.Value, n)
	case *etcdserverpb.Compare_Lease:
		of, with = "lease", n.lease(t.Lease)
	}
	return of + "(" + span(c.Key, c.RangeEnd, n) + ")" + signs[c.Result] + with
}

// sayOutcome formats the result of a transaction: its branch, and the results of its operations.
func sayOutcome(r *etcdserverpb.TxnResponse, n names) []string {
	branch := "else"
	if r.Succeeded {
		branch = "then"
	}
	parts := []string{branch}
	if r.Header != nil && r.Header.Revision > 0 {
		parts[0] += ", " + n.rev(r.Header.Revision)
	}
	for _, op := range r.Responses {
		parts = append(parts, sayResult(op, n))
	}
	return parts
}

func sayResult(op *etcdserverpb.ResponseOp, n names) string {
	switch r := inside(op).(type) {
	case *etcdserverpb.RangeResponse:
		return counted("Range", sayFound(r, n))
	case *etcdserverpb.PutResponse:
		return counted("Put", sayPutDone(r, n))
	case *etcdserverpb.DeleteRangeResponse:
		return counted("Delete", sayDeleted(r, n))
	case *etcdserverpb.TxnResponse:
		return "Txn (" + strings.Join(sayOutcome(r, n), "; ") + ")"
	}
	return "nothing"
}

// counted formats an operation and what it found, as one part.
func counted(op string, parts []string) string {
	if len(parts) == 0 {
		return op
	}
	text := op + " " + parts[0]
	if len(parts) > 1 {
		text += ": " + strings.Join(parts[1:], ", ")
	}
	return text
}

// inside returns the request or the answer in an operation of a transaction: the same message as
// that of a separate call. It is nil if there is none.
func inside(op proto.Message) proto.Message {
	m := op.ProtoReflect()
	held := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if held == nil {
		return nil
	}
	return m.Get(held).Message().Interface()
}

// writes reports whether the request with this answer changed the store.
func writes(answer proto.Message) bool {
	switch r := answer.(type) {
	case *etcdserverpb.PutResponse:
		return true
	case *etcdserverpb.DeleteRangeResponse:
		return r.Deleted > 0
	case *etcdserverpb.TxnResponse:
		return slices.ContainsFunc(r.Responses, func(op *etcdserverpb.ResponseOp) bool { return writes(inside(op)) })
	}
	return false
}
