package service

import (
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/keys"
)

// exhibits is the evidence in order, for the checks to look at.
type exhibits struct {
	facts    []Fact    // in the order of their times
	attempts []Attempt // in the order of their ends

	// trail are the records in the order of their revisions.
	trail []kv.Entry
	// written are the changes of the service's keys, by revision.
	written map[int64][]Change
	// candidates are the changes of the election's keys, in order.
	candidates []Change
	// odd are findings that fit nowhere.
	odd []string
}

func exhibit(facts []Fact, attempts []Attempt, changes []Change) *exhibits {
	x := &exhibits{facts: facts, attempts: attempts, written: make(map[int64][]Change)}
	space := kv.SpaceOf(Election)
	mailboxes, _ := keys.MailboxRange(Election)
	for _, c := range changes {
		switch key, isData := space.Key(c.Key); {
		case isData:
			c.Key = key
			x.written[c.Revision] = append(x.written[c.Revision], c)
		case strings.HasPrefix(c.Key, space.Trail()):
			x.record(space, c)
		case strings.HasPrefix(c.Key, Election+"/"):
			x.candidates = append(x.candidates, c)
		case strings.HasPrefix(c.Key, mailboxes), c.Key == keys.Newest(Election):
			// A node that stands can be asked to step back or to retire, and says so; no data.
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
	}
}
