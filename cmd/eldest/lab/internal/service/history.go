package service

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// methods of the records.
var methods = map[Method]kvpb.Record_Method{
	Put: kvpb.Record_METHOD_PUT, Append: kvpb.Record_METHOD_APPEND, Delete: kvpb.Record_METHOD_DELETE,
}

// history writes the evidence as the oracle reads it: a write of the store is a record of
// the trail (checkData compares the records with the data), and an instant is the wall clock's.
func (x *evidence) history(cfg Config) *oracle.History {
	var begin time.Time
	switch {
	case len(x.facts) > 0:
		begin = x.facts[0].At
	case len(x.attempts) > 0: // in the order of their ends
		begin = x.attempts[0].Begin.Add(-time.Hour)
	}
	h := cfg.Record(begin, x.facts, nil)
	h.Prefix, h.Data, h.Opens = Election+"/", "data", true
	for _, c := range x.candidates {
		h.Changes = append(h.Changes, oracle.Change{
			Rev: c.Kv.ModRevision, Key: string(c.Kv.Key), Create: c.Kv.CreateRevision, Deleted: c.Type == clientv3.EventTypeDelete,
		})
	}
	ids := make(map[int64]string) // of the requests, by revision
	for _, e := range x.trail {
		c := oracle.Change{Rev: e.Revision, Key: h.Data, Holder: cmp.Or(e.GetLeaderKey(), "nobody")}
		if c.Opens = e.GetMethod() == kvpb.Record_METHOD_OPEN; c.Opens {
			c.Value = oracle.WriteValue(e.GetToken(), "opening")
		} else {
			ids[e.Revision] = e.GetRequestId()
			c.Key += "/" + e.GetKey()
			c.Value, c.Deleted = oracle.WriteValue(e.GetToken(), e.GetRequestId()), e.GetMethod() == kvpb.Record_METHOD_DELETE
			c.Did = wanted(e.GetMethod(), e.GetKey(), string(e.GetValue()))
		}
		h.Changes = append(h.Changes, c)
	}
	slices.SortStableFunc(h.Changes, func(a, b oracle.Change) int { return cmp.Compare(a.Rev, b.Rev) })
	tell := func(at time.Time, e oracle.Event) {
		e.At = at.Sub(begin)
		h.Events = append(h.Events, e)
	}
	for _, a := range x.attempts {
		if a.Method.writes() {
			e := oracle.Event{Kind: oracle.Sent, Who: "the client at " + a.Node, Write: a.ID, Text: wanted(methods[a.Method], a.Key, a.Value)}
			tell(a.Begin, e)
			e.Kind, e.Text = oracle.Unclear, ""
			switch a.Outcome {
			case Done: // a receipt without a revision or token is as wrong as one with others
				e.Kind, e.Commit, e.Token = oracle.Acked, cmp.Or(a.Revision, -1), cmp.Or(int64(a.Token), -1)
			case Refused:
				e.Kind = oracle.Refused
			}
			tell(a.At, e)
		}
		if a.reads() {
			tell(a.Begin, oracle.Event{Kind: oracle.Read, Who: fmt.Sprintf("request %s at %s", a.ID, a.Node), Until: a.At.Sub(begin), Key: a.Key, Write: x.read(a, ids)})
		}
	}
	scenario.Number(h)
	return h
}

// read names the write that an attempt read: that of the revision that it was told, if
// what it read was written then.
func (x *evidence) read(a Attempt, ids map[int64]string) string {
	if a.Missing {
		return ""
	}
	if id := ids[a.Revision]; id != "" && slices.Contains(x.data[a.Revision], datum{key: a.Key, value: a.Found}) {
		return id
	}
	return fmt.Sprintf("%s of revision %d", short(a.Found), a.Revision) // no write is named like this
}

// wanted says what was asked for, or done.
func wanted(method kvpb.Record_Method, key, value string) string {
	return fmt.Sprintf("%s of %q: %s", strings.ToLower(strings.TrimPrefix(method.String(), "METHOD_")), key, short(value))
}

// short is a value in a few words: equal values have the same, others do not.
func short(value string) string {
	if len(value) > 100 {
		return fmt.Sprintf("%d bytes (SHA-256 %x)", len(value), sha256.Sum256([]byte(value)))
	}
	return value
}
