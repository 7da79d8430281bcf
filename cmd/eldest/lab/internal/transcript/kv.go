package transcript

import (
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// list joins the parts that are not empty.
func list(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ", ")
}

// when returns text if it applies.
func when(applies bool, text string) string {
	if applies {
		return text
	}
	return ""
}

func sayRange(r *etcdserverpb.RangeRequest, n names) string {
	bound := func(name string, rev int64) string { return when(rev != 0, name+" "+n.rev(rev)) }
	sorted := ""
	if r.SortOrder != etcdserverpb.RangeRequest_NONE || r.SortTarget != etcdserverpb.RangeRequest_KEY {
		sorted = "by " + strings.ToLower(r.SortTarget.String())
		switch r.SortOrder {
		case etcdserverpb.RangeRequest_DESCEND:
			sorted += " descending"
		case etcdserverpb.RangeRequest_ASCEND:
			sorted += " ascending"
		case etcdserverpb.RangeRequest_NONE:
		}
	}
	return list(span(r.Key, r.RangeEnd, n), bound("at", r.Revision), sorted,
		when(r.Limit > 0, fmt.Sprint("limit ", r.Limit)),
		bound("create at least", r.MinCreateRevision), bound("create at most", r.MaxCreateRevision),
		bound("mod at least", r.MinModRevision), bound("mod at most", r.MaxModRevision),
		when(r.KeysOnly, "keys only"), when(r.CountOnly, "count only"), when(r.Serializable, "serializable"))
}

func sayPut(r *etcdserverpb.PutRequest, n names) string {
	return list(key(r.Key, n)+" = "+value(r.Value, n), when(r.Lease != 0, "lease "+n.lease(r.Lease)),
		when(r.PrevKv, "with previous value"), when(r.IgnoreValue, "value unchanged"), when(r.IgnoreLease, "lease unchanged"))
}

func sayDelete(r *etcdserverpb.DeleteRangeRequest, n names) string {
	return list(span(r.Key, r.RangeEnd, n), when(r.PrevKv, "with previous value"))
}

// sayKey formats a key with the fields that are set.
func sayKey(kv *mvccpb.KeyValue, n names) string {
	text := key(kv.Key, n)
	if len(kv.Value) > 0 {
		text += " = " + value(kv.Value, n)
	}
	if kv.CreateRevision > 0 {
		text += " create " + n.rev(kv.CreateRevision)
	}
	if kv.ModRevision != kv.CreateRevision && kv.ModRevision > 0 {
		text += " mod " + n.rev(kv.ModRevision)
	}
	if kv.Lease != 0 {
		text += " lease " + n.lease(kv.Lease)
	}
	return text
}

// sayFound lists the keys that a range found, after their number.
func sayFound(r *etcdserverpb.RangeResponse, n names) []string {
	parts := []string{found(len(r.Kvs), r.Count)}
	for _, kv := range r.Kvs {
		parts = append(parts, sayKey(kv, n))
	}
	return parts
}

func found(shown int, count int64) string {
	switch {
	case count == 0:
		return "no key"
	case int64(shown) == count && count == 1:
		return "1 key"
	case int64(shown) == count:
		return fmt.Sprint(count, " keys")
	default:
		return fmt.Sprintf("%d of %d keys", shown, count)
	}
}

func sayPutDone(r *etcdserverpb.PutResponse, n names) []string {
	if r.PrevKv == nil {
		return nil
	}
	return []string{"was " + sayKey(r.PrevKv, n)}
}

func sayDeleted(r *etcdserverpb.DeleteRangeResponse, n names) []string {
	parts := []string{fmt.Sprint(r.Deleted, " deleted")}
	for _, kv := range r.PrevKvs {
		parts = append(parts, "was "+sayKey(kv, n))
	}
	return parts
}
