package service

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// methods of the records.
var methods = map[Method]kvpb.Record_Method{
	Put: kvpb.Record_METHOD_PUT, Append: kvpb.Record_METHOD_APPEND, Delete: kvpb.Record_METHOD_DELETE,
}

// history writes the evidence as the oracle reads it: a write of the store is a record of
// the trail (that the data is what the records say is checkData's affair), and an instant
// is what the wall clock said.
func (x *exhibits) history() *oracle.History {
	h := &oracle.History{About: oracle.About{Prefix: Election + "/", Data: "data", Opens: true}}
	for _, c := range x.candidates {
		h.Changes = append(h.Changes, oracle.Change{Rev: c.Revision, Key: c.Key, Create: c.Create, Deleted: c.Deleted})
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
	for _, f := range x.facts {
		h.Events = append(h.Events, f.events()...)
	}
	for _, a := range x.attempts {
		h.Events = append(h.Events, a.events(x.read(a, ids))...)
	}
	slices.SortStableFunc(h.Events, func(a, b oracle.Event) int { return cmp.Compare(a.At, b.At) })
	for i := range h.Events {
		h.Events[i].Seq = i + 1
	}
	return h
}

// instant is a time as the oracle has it.
func instant(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }

// events tells how processes ended, and what is left.
func (f Fact) events() []oracle.Event {
	e := oracle.Event{At: instant(f.At), Who: f.Node}
	switch {
	case f.Kind == Acted && f.Act == Start:
		e.Kind = oracle.Joined
	case f.Kind == Acted && f.Act == Kill:
		e.Kind, e.Code = oracle.Crashed, -1
	case f.Kind == Exited:
		e.Kind, e.Code, e.Text = oracle.Exited, f.Code, f.Reason
	case f.Kind == Left && f.Keys+f.Leases > 0:
		e.Kind, e.Text = oracle.Left, fmt.Sprintf("in etcd: %s and %s", story.Count(f.Keys, "key"), story.Count(f.Leases, "lease"))
	default:
		return nil
	}
	return []oracle.Event{e}
}

// reads reports whether the attempt says what was there: a read, or a delete that found
// nothing to delete.
func (a Attempt) reads() bool { return a.Missing || a.Method == Get && a.Outcome == Done }

// events tells what the client asked for and was told. read is the write that it read.
func (a Attempt) events(read string) (events []oracle.Event) {
	if a.Method.writes() {
		who := "the client at " + a.Node
		answer := oracle.Event{At: instant(a.At), Who: who, Kind: oracle.Unclear, Write: a.ID}
		switch a.Outcome {
		case Done: // a receipt without a revision or token is as wrong as one with others
			answer.Kind, answer.Commit, answer.Token = oracle.Acked, cmp.Or(a.Revision, -1), cmp.Or(int64(a.Token), -1)
		case Refused:
			answer.Kind = oracle.Refused
		}
		events = append(events,
			oracle.Event{At: instant(a.Begin), Who: who, Kind: oracle.Sent, Write: a.ID, Text: wanted(methods[a.Method], a.Key, a.Value)}, answer)
	}
	if a.reads() {
		events = append(events, oracle.Event{At: instant(a.Begin), Until: instant(a.At), Who: fmt.Sprintf("request %s at %s", a.ID, a.Node), Kind: oracle.Read, Key: a.Key, Write: read})
	}
	return events
}

// read names the write that an attempt read: that of the revision that it was told, if
// what it read was written then.
func (x *exhibits) read(a Attempt, ids map[int64]string) string {
	if a.Missing {
		return ""
	}
	for _, c := range x.written[a.Revision] {
		if id := ids[a.Revision]; id != "" && c.Key == a.Key && !c.Deleted && string(c.Value) == a.Found {
			return id
		}
	}
	return fmt.Sprintf("%s of revision %d", short(a.Found), a.Revision) // no write is named like this
}

// wanted says what was asked for, or done.
func wanted(method kvpb.Record_Method, key, value string) string {
	return fmt.Sprintf("%s of %q: %s", strings.ToLower(strings.TrimPrefix(method.String(), "METHOD_")), key, short(value))
}

// short is a value in a few words, of which equal values have the same and others do not.
func short(value string) string {
	if len(value) > 100 {
		return fmt.Sprintf("%d bytes (SHA-256 %x)", len(value), sha256.Sum256([]byte(value)))
	}
	return value
}
