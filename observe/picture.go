package observe

import (
	"cmp"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// picture is the queue as the changes so far add up to. It does no I/O.
//
// Invariant: line is sorted by token, and by key where keys were put by hand in one
// transaction, strictly; it holds the queue as it was at revision, and nothing of
// any other.
type picture struct {
	election string
	revision int64
	line     []eldest.Candidate
	foreign  func(key string)
}

// reset takes a snapshot, in which each key is there once.
func (p *picture) reset(revision int64, kvs []*mvccpb.KeyValue) {
	p.revision, p.line = revision, p.line[:0]
	for _, kv := range kvs {
		if c, ok := p.candidate(kv); ok {
			p.line = append(p.line, c)
		}
	}
	slices.SortFunc(p.line, func(a, b eldest.Candidate) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), strings.Compare(a.Key, b.Key))
	})
}

// change takes all events of one revision.
func (p *picture) change(revision int64, events []*clientv3.Event) {
	p.revision = revision
	for _, ev := range events {
		if ev.Type == mvccpb.DELETE {
			p.remove(string(ev.Kv.Key))
		} else if c, ok := p.candidate(ev.Kv); ok {
			p.put(c)
		}
	}
}

// candidate reads a key; ok is false for a foreign one, which is reported.
func (p *picture) candidate(kv *mvccpb.KeyValue) (c eldest.Candidate, ok bool) {
	key := string(kv.Key)
	lease, err := keys.Parse(p.election, key)
	if err != nil {
		p.foreign(key)
		return c, false
	}
	return eldest.Candidate{
		Key: key, Lease: lease, Token: eldest.Token(kv.CreateRevision), ModRevision: kv.ModRevision, Value: kv.Value,
	}, true
}

func (p *picture) put(c eldest.Candidate) {
	at, present := p.find(c.Token, c.Key)
	if !present {
		p.line = slices.Insert(p.line, at, c)
		return
	}
	p.line[at] = c
}

func (p *picture) remove(key string) {
	// A deletion event does not name the life that ended, so the key is looked
	// for. The leader's, at the front, is found at once.
	if i := slices.IndexFunc(p.line, func(c eldest.Candidate) bool { return c.Key == key }); i >= 0 {
		p.line = slices.Delete(p.line, i, i+1)
	}
}

func (p *picture) find(token eldest.Token, key string) (int, bool) {
	return slices.BinarySearchFunc(p.line, token, func(c eldest.Candidate, t eldest.Token) int {
		return cmp.Or(cmp.Compare(c.Token, t), strings.Compare(c.Key, key))
	})
}

// state returns who leads in this picture.
func (p *picture) state() eldest.State {
	if len(p.line) == 0 {
		return eldest.State{Kind: eldest.Nobody, Revision: p.revision}
	}
	return eldest.State{Kind: eldest.Led, Leader: p.line[0], Revision: p.revision}
}
