package service

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// methods of the records.
var methods = map[Method]kvpb.Record_Method{
	Put: kvpb.Record_METHOD_PUT, Append: kvpb.Record_METHOD_APPEND, Delete: kvpb.Record_METHOD_DELETE,
}

// checkLost: what was acknowledged is there, as it was asked for, where the receipt
// says (I3).
func (x *exhibits) checkLost() story.Verdict {
	var problems []string
	acknowledged := 0
	for _, a := range x.attempts {
		if !a.Method.writes() || a.Outcome != Done {
			continue
		}
		acknowledged++
		records := x.byID[a.ID]
		if len(records) == 0 {
			problems = append(problems, fmt.Sprintf("%s of %s was acknowledged by %s and is not there", a.Method, a.ID, a.Node))
			continue
		}
		for _, e := range records {
			if e.Revision != a.Revision || tokenOf(e) != a.Token {
				problems = append(problems, fmt.Sprintf("%s was acknowledged at revision %d with token %d, and is there at %d with %d",
					a.ID, a.Revision, a.Token, e.Revision, e.GetToken()))
			}
			if e.GetMethod() != methods[a.Method] || e.GetKey() != a.Key || string(e.GetValue()) != a.Value {
				problems = append(problems, fmt.Sprintf("%s asked for %s of %s, and %v of %s was carried out", a.ID, a.Method, a.Key, e.GetMethod(), e.GetKey()))
			}
		}
	}
	return story.Judge("no acknowledged write is lost", acknowledged, problems, "%s, each with its record", story.Count(acknowledged, "acknowledged write"))
}

// checkTwice: each attempt was carried out once or not at all; and nothing that nobody
// asked for.
func (x *exhibits) checkTwice() story.Verdict {
	var problems []string
	open, applied := 0, 0
	for id, records := range x.byID {
		if len(records) > 1 {
			problems = append(problems, fmt.Sprintf("%s was applied %d times: at revisions %s", id, len(records), revisions(records)))
		}
		if x.asked[id] == nil {
			problems = append(problems, fmt.Sprintf("%q was applied, at revision %s, and nobody asked for it", id, revisions(records)))
		}
	}
	for _, a := range x.attempts {
		if a.Method.writes() && a.Outcome == Open {
			open++
			if len(x.byID[a.ID]) > 0 {
				applied++
			}
		}
	}
	slices.Sort(problems) // a map has no order
	return story.Judge("no attempt is applied twice", len(x.byID), problems, "%s applied; of %d without a certain answer %d were",
		story.Count(len(x.byID), "attempt"), open, applied)
}

// checkRefused: what the client was told was not done was not done.
func (x *exhibits) checkRefused() story.Verdict {
	var problems []string
	refused := 0
	for _, a := range x.attempts {
		if a.Method.writes() && a.Outcome == Refused {
			refused++
			if records := x.byID[a.ID]; len(records) > 0 {
				problems = append(problems, fmt.Sprintf("%s was refused by %s (%s) and applied all the same, at revision %s", a.ID, a.Node, a.Answer, revisions(records)))
			}
		}
	}
	return story.Judge("no refused write is applied", refused, problems, "%s", story.Count(refused, "refused write"))
}

// checkData: the data is what the trail says, change by change: nothing was written
// without a record, and each record did what it says.
func (x *exhibits) checkData() story.Verdict {
	problems := append([]string(nil), x.odd...)
	recorded := make(map[int64]bool)
	before := make(map[string][]byte) // values, as the trail makes them
	records := 0
	for _, e := range x.trail {
		if e.GetMethod() == kvpb.Record_METHOD_OPEN {
			continue
		}
		records++
		if recorded[e.Revision] {
			problems = append(problems, fmt.Sprintf("revision %d has two records", e.Revision))
		}
		recorded[e.Revision] = true
		want := append([]byte(nil), e.GetValue()...)
		if e.GetMethod() == kvpb.Record_METHOD_APPEND {
			want = append(append([]byte(nil), before[e.GetKey()]...), want...)
		}
		deleted := e.GetMethod() == kvpb.Record_METHOD_DELETE
		if got := x.written[e.Revision]; len(got) != 1 || got[0].Key != e.GetKey() || got[0].Deleted != deleted || !deleted && !bytes.Equal(got[0].Value, want) {
			problems = append(problems, fmt.Sprintf("revision %d did not do what its record says: %v of %s", e.Revision, e.GetMethod(), e.GetKey()))
		}
		if before[e.GetKey()] = want; deleted {
			delete(before, e.GetKey())
		}
	}
	for revision, written := range x.written {
		if !recorded[revision] {
			problems = append(problems, fmt.Sprintf("revision %d wrote %s without a record", revision, written[0].Key))
		}
	}
	slices.Sort(problems)
	return story.Judge("the data is what the trail says", records, problems, "%s of %s", story.Count(records, "change"), story.Count(len(x.data), "key"))
}

// revisions renders where records are.
func revisions(records []kv.Entry) string {
	var b bytes.Buffer
	for i, e := range records {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, e.Revision)
	}
	return b.String()
}
