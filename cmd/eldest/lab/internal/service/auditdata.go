package service

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

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
	keys := make(map[string]bool)
	for revision, written := range x.written {
		for _, c := range written {
			keys[c.Key] = true
		}
		if !recorded[revision] {
			problems = append(problems, fmt.Sprintf("revision %d wrote %s without a record", revision, written[0].Key))
		}
	}
	slices.Sort(problems)
	return story.Judge("the data is what the trail says", records, problems, "%s of %s", story.Count(records, "change"), story.Count(len(keys), "key"))
}
