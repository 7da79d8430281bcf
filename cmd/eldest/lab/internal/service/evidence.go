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

// evidence is what a run is judged by.
type evidence struct {
	facts    []scenario.Fact // in order
	attempts []Attempt       // in the order of their ends
	// changes are the records, and the changes of the election's keys, as the oracle reads them.
	changes []oracle.Change
	// writes are the changes of the data that the records describe, by revision; data are those that
	// were made.
	writes map[int64]write
	data   map[int64][]datum
	// odd describes changes that disagree with the records, or fit nowhere.
	odd []string
}

// write is the change that a request made.
type write struct {
	id string
	datum
}

// datum is a change of a key of the service. The value of a deleted key is empty.
type datum struct {
	key, value string
	deleted    bool
}

func newEvidence(facts []scenario.Fact, attempts []Attempt, changes []Change) *evidence {
	x := &evidence{facts: scenario.InOrder(facts), attempts: scenario.InOrder(attempts), writes: make(map[int64]write), data: make(map[int64][]datum)}
	odd := func(format string, args ...any) { x.odd = append(x.odd, fmt.Sprintf(format, args...)) }
	space := kv.SpaceOf(Election)
	requests, _ := keys.RequestRange(Election)
	values := make(map[string]string) // that the trail describes
	for _, c := range changes {
		name, rev, deleted := string(c.Kv.Key), c.Kv.ModRevision, c.Type == clientv3.EventTypeDelete
		switch key, isData := space.Key(name); {
		case isData:
			x.data[rev] = append(x.data[rev], datum{key, string(c.Kv.Value), deleted})
		case strings.HasPrefix(name, space.Trail()): // to which records are only added
			switch e, err := space.ParseEntry(c.Kv); {
			case deleted:
				odd("the record %s was deleted", name)
			case c.Kv.Version > 1:
				odd("the record %s was overwritten", name)
			case err != nil:
				odd("%v", err)
			default:
				if _, twice := x.writes[e.Revision]; twice {
					odd("revision %d has two records", rev)
				}
				x.record(e, values)
			}
		case strings.HasPrefix(name, keys.Prefix(Election)):
			x.changes = append(x.changes, oracle.Change{Rev: rev, Key: name, Create: c.Kv.CreateRevision, Deleted: deleted})
		case strings.HasPrefix(name, requests), name == keys.Newest(Election):
			// Request keys of nodes and the pointer to the newest candidate are not data.
		default:
			odd("unexpected write of %s", name)
		}
	}
	for rev, w := range x.writes {
		if !slices.Equal(x.data[rev], []datum{w.datum}) {
			odd("revision %d differs from its record, of request %s for %s", rev, w.id, w.key)
		}
	}
	for rev, written := range x.data {
		if _, recorded := x.writes[rev]; !recorded {
			odd("revision %d wrote %s without a record", rev, written[0].key)
		}
	}
	slices.Sort(x.odd)
	return x
}

// register is the oracle's name for the service's data.
const register = "data"

// record adds a record to the evidence. values are what the earlier ones left, and are updated.
func (x *evidence) record(r kv.Entry, values map[string]string) {
	c := oracle.Change{Rev: r.Revision, Key: register, Holder: cmp.Or(r.GetLeaderKey(), "nobody")}
	if c.Opens = r.GetMethod() == kvpb.Record_METHOD_OPEN; c.Opens {
		c.Value = oracle.WriteValue(r.GetToken(), "opening")
	} else {
		d := datum{r.GetKey(), string(r.GetValue()), r.GetMethod() == kvpb.Record_METHOD_DELETE}
		method := Method(strings.ToLower(strings.TrimPrefix(r.GetMethod().String(), "METHOD_")))
		c.Value = oracle.WriteValue(r.GetToken(), r.GetRequestId())
		c.Key, c.Deleted, c.Did = register+"/"+d.key, d.deleted, operation(method, d.key, d.value)
		if method == Append {
			d.value = values[d.key] + d.value
		}
		values[d.key], x.writes[r.Revision] = d.value, write{r.GetRequestId(), d}
	}
	x.changes = append(x.changes, c)
}

// operation describes what was requested, or done.
func operation(m Method, key, value string) string {
	return fmt.Sprintf("%s of %q: %s", m, key, short(value))
}

// short shortens a value: equal values give equal texts, different values different ones.
func short(value string) string {
	if len(value) > 100 {
		return fmt.Sprintf("%d bytes (SHA-256 %x)", len(value), sha256.Sum256([]byte(value)))
	}
	return value
}

// history converts the evidence to the form that the oracle reads: a write of the store is a record
// of the trail, and an instant is one of the wall clock.
func (x *evidence) history(cfg Config) *oracle.History {
	var begin time.Time
	switch {
	case len(x.facts) > 0:
		begin = x.facts[0].At
	case len(x.attempts) > 0: // in the order of their ends
		begin = x.attempts[0].Begin.Add(-time.Hour)
	}
	h := cfg.Record(begin, x.facts, nil)
	h.Prefix, h.Data, h.Opens, h.Changes = keys.Prefix(Election), register, true, x.changes
	tell := func(at time.Time, e oracle.Event) {
		e.At = at.Sub(begin)
		h.Events = append(h.Events, e)
	}
	for _, a := range x.attempts {
		if a.Method != Get {
			e := oracle.Event{Kind: oracle.Sent, Who: "the client at " + a.Node, Write: a.ID, Text: operation(a.Method, a.Key, a.Value)}
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
			tell(a.Begin, oracle.Event{Kind: oracle.Read, Who: fmt.Sprintf("request %s at %s", a.ID, a.Node), Until: a.At.Sub(begin), Key: a.Key, Write: x.found(a)})
		}
	}
	scenario.Number(h)
	return h
}

// found names the write that an attempt read: that of the revision in the response, if it wrote the
// value in the response.
func (x *evidence) found(a Attempt) string {
	if a.Missing {
		return ""
	}
	if id := x.writes[a.Revision].id; id != "" && slices.Contains(x.data[a.Revision], datum{key: a.Key, value: a.Found}) {
		return id
	}
	return fmt.Sprintf("%s of revision %d", short(a.Found), a.Revision) // no write has such a name
}
