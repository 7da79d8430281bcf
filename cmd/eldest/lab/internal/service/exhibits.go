package service

import (
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/keys"
)

// exhibits is the evidence in order, for the checks to look at.
type exhibits struct {
	facts    []Fact    // in the order of their times
	attempts []Attempt // in the order of their ends
	asked    map[string]*Attempt

	// trail are the records in the order of their revisions, byID those with a request
	// id.
	trail []kv.Entry
	byID  map[string][]kv.Entry
	// data are the changes of each key of the service, and written those of each
	// revision.
	data    map[string][]Change
	written map[int64][]Change
	// candidates are the keys of the election, in the order of their creation.
	candidates []*life
	// odd are findings that fit nowhere.
	odd []string
}

// life is one life of a candidate's key. gone is the revision that deleted it; 0: none
// did.
type life struct {
	key        string
	born, gone int64
}

// at reports whether the key was there at a revision.
func (l *life) at(revision int64) bool {
	return l.born <= revision && (l.gone == 0 || revision < l.gone)
}

func exhibit(facts []Fact, attempts []Attempt, changes []Change) *exhibits {
	x := &exhibits{
		facts: facts, attempts: attempts, asked: make(map[string]*Attempt),
		byID: make(map[string][]kv.Entry), data: make(map[string][]Change), written: make(map[int64][]Change),
	}
	for i := range attempts {
		x.asked[attempts[i].ID] = &attempts[i]
	}
	space := kv.SpaceOf(Election)
	mailboxes, _ := keys.MailboxRange(Election)
	for _, c := range changes {
		switch key, isData := space.Key(c.Key); {
		case isData:
			c.Key = key
			x.data[key] = append(x.data[key], c)
			x.written[c.Revision] = append(x.written[c.Revision], c)
		case strings.HasPrefix(c.Key, space.Trail()):
			x.record(space, c)
		case strings.HasPrefix(c.Key, Election+"/"):
			x.candidate(c)
		case strings.HasPrefix(c.Key, mailboxes):
			// A node that stands can be asked to step back or to retire: no data.
		default:
			x.odd = append(x.odd, "somebody wrote "+c.Key)
		}
	}
	return x
}

// record files a change of the trail. The trail is only ever added to.
func (x *exhibits) record(space kv.Space, c Change) {
	e, err := space.ParseEntry(&mvccpb.KeyValue{Key: []byte(c.Key), Value: c.Value, CreateRevision: c.Create, Version: c.Version})
	switch {
	case c.Deleted:
		x.odd = append(x.odd, "the record "+c.Key+" was deleted")
	case c.Version > 1:
		x.odd = append(x.odd, "the record "+c.Key+" was written over")
	case err != nil:
		x.odd = append(x.odd, err.Error())
	default:
		x.trail = append(x.trail, e)
		if e.GetMethod() != kvpb.Record_METHOD_OPEN {
			x.byID[e.GetRequestId()] = append(x.byID[e.GetRequestId()], e)
		}
	}
}

func (x *exhibits) candidate(c Change) {
	i := slices.IndexFunc(x.candidates, func(l *life) bool { return l.key == c.Key && l.gone == 0 })
	switch {
	case c.Deleted && i >= 0:
		x.candidates[i].gone = c.Revision
	case !c.Deleted && i < 0:
		x.candidates = append(x.candidates, &life{key: c.Key, born: c.Revision})
	}
}

// eldest is who led at a revision, by etcd: the candidate with the lowest create
// revision of those that were there; nil: nobody.
func (x *exhibits) eldest(revision int64) *life {
	for _, l := range x.candidates {
		if l.at(revision) {
			return l
		}
	}
	return nil
}

// tokenOf is the token of an entry.
func tokenOf(e kv.Entry) eldest.Token { return eldest.Token(e.GetToken()) }
