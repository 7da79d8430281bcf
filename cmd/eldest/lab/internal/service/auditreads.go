package service

import (
	"fmt"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

// reads reports whether the attempt says what was there: a read, or a delete that found
// nothing to delete.
func (a Attempt) reads() bool { return a.Missing || a.Method == Get && a.Outcome == Done }

// checkReads: no read returned what had been replaced before it began, or what nobody
// had asked for when it was over. The moments are those of bounds: a read sees no state
// that ended at or before the newest revision that was known when it began, and none
// from a revision that cannot have been there when it was over.
func (x *exhibits) checkReads() story.Verdict {
	var problems []string
	reads, vain := 0, 0
	b := x.bounds()
	for _, a := range x.attempts {
		if !a.reads() {
			continue
		}
		if reads++; a.Method == Delete {
			vain++
		}
		known, first := b.known(a.Begin), b.future(a.At)
		switch began, ended, found := x.state(a, first); {
		case !found:
			problems = append(problems, fmt.Sprintf("%s read %s at revision %d, which etcd never had there", a.ID, a.Key, a.Revision))
		case began >= first:
			problems = append(problems, fmt.Sprintf("%s read %s from %s as it was from revision %d on, when that could not be: revision %d was not asked for yet",
				a.ID, a.Key, a.Node, began, first))
		case ended > 0 && ended <= known:
			problems = append(problems, fmt.Sprintf("%s read %s from %s as it was until revision %d, when revision %d was known already", a.ID, a.Key, a.Node, ended, known))
		}
	}
	return story.Judge("no read is stale", reads, problems, "%s, with %s of what was not there", story.Count(reads, "read"), story.Count(vain, "delete"))
}

// checkTime: the order of revisions does not contradict the clock: a write that was
// asked for when a revision was known is a later one.
//
// Nothing says when a revision was made. So one that was there before anybody asked for
// it goes unnoticed as long as nobody had heard of it, or of a later one.
func (x *exhibits) checkTime() story.Verdict {
	var problems []string
	judged := 0
	b := x.bounds()
	for _, e := range x.trail {
		a := x.asked[e.GetRequestId()]
		if a == nil {
			continue // a tenure's first record; another check knows of strangers
		}
		judged++
		if known := b.known(a.Begin); e.Revision <= known {
			problems = append(problems, fmt.Sprintf("%s was applied at revision %d, and was asked for when revision %d was known already", a.ID, e.Revision, known))
		}
	}
	return story.Judge("no write precedes its request", judged, problems, "%s, each later than what was known when it was asked for",
		story.Count(judged, "write"))
}

// state finds the state that a read returned: the revisions that began it and ended
// it, 0 for the first when there was nothing yet and for the second when nothing has.
// Of several that a key was missing in, it is the last one that began before the
// revision first, which is the reader's best case.
func (x *exhibits) state(read Attempt, first int64) (began, ended int64, found bool) {
	changes := x.data[read.Key]
	if read.Missing {
		found = true // before its first write
		if len(changes) > 0 {
			ended = changes[0].Revision
		}
	}
	for i, c := range changes {
		next := int64(0)
		if i+1 < len(changes) {
			next = changes[i+1].Revision
		}
		switch {
		case read.Missing && c.Deleted && c.Revision < first:
			began, ended = c.Revision, next
		case !read.Missing && c.Revision == read.Revision:
			return c.Revision, next, !c.Deleted && string(c.Value) == read.Found
		}
	}
	return began, ended, found
}
