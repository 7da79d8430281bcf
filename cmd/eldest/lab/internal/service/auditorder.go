package service

import (
	"fmt"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// checkDeposed: every write was applied by who led at that moment. It is judged twice,
// by two witnesses that know nothing of each other.
//
// The trail: in the order of revisions, tokens never fall; after a tenure's first
// record there is none of an older one (I3).
//
// The election: at the revision before the write the leader's key was there, in the
// life that the token names, and nobody older stood (I2).
func (x *exhibits) checkDeposed() story.Verdict {
	var problems []string
	var newest eldest.Token
	opened := make(map[eldest.Token]bool)
	for _, e := range x.trail {
		token := tokenOf(e)
		if token < newest {
			problems = append(problems, fmt.Sprintf("%s was applied at revision %d with token %d, after token %d had begun", e.GetRequestId(), e.Revision, token, newest))
		}
		newest = max(newest, token)
		switch open := e.GetMethod() == kvpb.Record_METHOD_OPEN; {
		case open && opened[token]:
			problems = append(problems, fmt.Sprintf("token %d began twice", token))
		case open:
			opened[token] = true
		case !opened[token]:
			problems = append(problems, fmt.Sprintf("%s was applied at revision %d with token %d, which had not begun", e.GetRequestId(), e.Revision, token))
		}
		if l := x.eldest(e.Revision - 1); l == nil || eldest.Token(l.born) != token || l.key != e.GetLeaderKey() {
			problems = append(problems, fmt.Sprintf("revision %d was written with token %d, when %s", e.Revision, token, l))
		}
	}
	return story.Judge("no write of a deposed leader", len(x.trail), problems, "%s in %s, each by who led one revision before",
		story.Count(len(x.trail), "record"), story.Count(len(opened), "tenure"))
}

// String says who led.
func (l *life) String() string {
	if l == nil {
		return "nobody led"
	}
	return fmt.Sprintf("%s led with token %d", l.key, l.born)
}
