package transcript

import (
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// sayTxn writes a transaction: a part for each operation, and one for all compares.
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
	switch r := op.Request.(type) {
	case *etcdserverpb.RequestOp_RequestRange:
		return "Range " + sayRange(r.RequestRange, n)
	case *etcdserverpb.RequestOp_RequestPut:
		return "Put " + sayPut(r.RequestPut, n)
	case *etcdserverpb.RequestOp_RequestDeleteRange:
		return "Delete " + sayDelete(r.RequestDeleteRange, n)
	case *etcdserverpb.RequestOp_RequestTxn:
		return "Txn (" + Entry{Parts: sayTxn(r.RequestTxn, n)}.Text() + ")"
	}
	return "nothing"
}

// signs are how compares are written.
var signs = map[etcdserverpb.Compare_CompareResult]string{
	etcdserverpb.Compare_EQUAL: " = ", etcdserverpb.Compare_NOT_EQUAL: " ≠ ",
	etcdserverpb.Compare_GREATER: " > ", etcdserverpb.Compare_LESS: " < ",
}

func sayCompare(c *etcdserverpb.Compare, n names) string {
	of, with := "version", ""
	rev := func(r int64) string {
		if r == 0 {
			return "0" // there is no such key
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

// sayOutcome writes what a transaction came to: which branch, and what its operations say.
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
	switch r := op.Response.(type) {
	case *etcdserverpb.ResponseOp_ResponseRange:
		return counted("Range", sayFound(r.ResponseRange, n))
	case *etcdserverpb.ResponseOp_ResponsePut:
		return counted("Put", sayPutDone(r.ResponsePut, n))
	case *etcdserverpb.ResponseOp_ResponseDeleteRange:
		return counted("Delete", sayDeleted(r.ResponseDeleteRange, n))
	case *etcdserverpb.ResponseOp_ResponseTxn:
		return "Txn (" + strings.Join(sayOutcome(r.ResponseTxn, n), "; ") + ")"
	}
	return "nothing"
}

// counted writes an operation and what it found, as one part.
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

// writes reports whether a transaction that had this answer changed the store.
func writes(r *etcdserverpb.TxnResponse) bool {
	for _, op := range r.Responses {
		switch r := op.Response.(type) {
		case *etcdserverpb.ResponseOp_ResponsePut:
			return true
		case *etcdserverpb.ResponseOp_ResponseDeleteRange:
			if r.ResponseDeleteRange.Deleted > 0 {
				return true
			}
		case *etcdserverpb.ResponseOp_ResponseTxn:
			if writes(r.ResponseTxn) {
				return true
			}
		}
	}
	return false
}
