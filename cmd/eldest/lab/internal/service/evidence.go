package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/keys"
)

// Change is one key that one etcd revision put or deleted. All other evidence is reports; this is
// what etcd did.
type Change = *clientv3.Event

// evidenceTime bounds the reading of the changes.
const evidenceTime = 30 * time.Second

// Changes reads all changes that ever happened in etcd, in order. It blocks until it has everything
// up to the present revision, or ctx ends.
func Changes(ctx context.Context, client *clientv3.Client) ([]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	// Linearizable: every change that was acknowledged to any client is included.
	now, err := client.Get(ctx, "present")
	if err != nil {
		return nil, fmt.Errorf("reading the evidence: %w", err)
	}
	if now.Header.Revision <= 1 {
		return nil, nil // nothing ever happened
	}
	var all []Change
	for resp := range client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(1)) {
		if err := resp.Err(); err != nil {
			return nil, fmt.Errorf("reading the evidence: %w", err)
		}
		all = append(all, resp.Events...)
		// A revision's changes arrive together, and each revision changes something.
		if n := len(all); n > 0 && all[n-1].Kv.ModRevision >= now.Header.Revision {
			return all, nil
		}
	}
	return nil, fmt.Errorf("reading the evidence: %w", context.Cause(ctx))
}

// evidence is all evidence of a run, in order.
type evidence struct {
	facts    []scenario.Fact // in the order of their times
	attempts []Attempt       // in the order of their ends

	// trail are the records in the order of their revisions.
	trail []kv.Entry
	// data are the changes of the service's keys, by revision.
	data map[int64][]datum
	// candidates are the changes of the election's keys, in order.
	candidates []Change
	// odd describes changes that fit nowhere.
	odd []string
}

// datum is a change of a key of the service.
type datum struct {
	key, value string
	deleted    bool
}

func newEvidence(facts []scenario.Fact, attempts []Attempt, changes []Change) *evidence {
	x := &evidence{facts: scenario.InOrder(facts), attempts: scenario.InOrder(attempts), data: make(map[int64][]datum)}
	space := kv.SpaceOf(Election)
	mailboxes, _ := keys.RequestRange(Election)
	for _, c := range changes {
		name, deleted := string(c.Kv.Key), c.Type == clientv3.EventTypeDelete
		switch key, isData := space.Key(name); {
		case isData:
			x.data[c.Kv.ModRevision] = append(x.data[c.Kv.ModRevision], datum{key, string(c.Kv.Value), deleted})
		case strings.HasPrefix(name, space.Trail()):
			// Records are only added to the trail.
			switch e, err := space.ParseEntry(c.Kv); {
			case deleted:
				x.odd = append(x.odd, "the record "+name+" was deleted")
			case c.Kv.Version > 1:
				x.odd = append(x.odd, "the record "+name+" was overwritten")
			case err != nil:
				x.odd = append(x.odd, err.Error())
			default:
				x.trail = append(x.trail, e)
			}
		case strings.HasPrefix(name, Election+"/"):
			x.candidates = append(x.candidates, c)
		case strings.HasPrefix(name, mailboxes), name == keys.Newest(Election):
			// Request keys of nodes and the pointer to the newest candidate are not data.
		default:
			x.odd = append(x.odd, "unexpected write of "+name)
		}
	}
	return x
}

// methods of the records.
var methods = map[Method]kvpb.Record_Method{
	Put: kvpb.Record_METHOD_PUT, Append: kvpb.Record_METHOD_APPEND, Delete: kvpb.Record_METHOD_DELETE,
}

// history converts the evidence to the form that the oracle reads: a write of the store is a record of the
// trail (checkData compares the records with the data), and an instant is one of the wall clock.
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
			case Done: // a receipt without a revision or token is as wrong as one with other values
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

// read names the write that an attempt read: that of the revision in the response, if it wrote the
// value in the response.
func (x *evidence) read(a Attempt, ids map[int64]string) string {
	if a.Missing {
		return ""
	}
	if id := ids[a.Revision]; id != "" && slices.Contains(x.data[a.Revision], datum{key: a.Key, value: a.Found}) {
		return id
	}
	return fmt.Sprintf("%s of revision %d", short(a.Found), a.Revision) // no write has such a name
}

// wanted describes what was requested, or done.
func wanted(method kvpb.Record_Method, key, value string) string {
	return fmt.Sprintf("%s of %q: %s", strings.ToLower(strings.TrimPrefix(method.String(), "METHOD_")), key, short(value))
}

// short shortens a value: equal values give equal texts, different values different ones.
func short(value string) string {
	if len(value) > 100 {
		return fmt.Sprintf("%d bytes (SHA-256 %x)", len(value), sha256.Sum256([]byte(value)))
	}
	return value
}
