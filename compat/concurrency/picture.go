package concurrency

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
)

// picture is the line as the changes so far add up to, with whole key-values, because
// that is what this API hands out. It does no I/O.
//
// Invariant: line holds the candidates as of revision, each key once, sorted by create
// revision, and by key where keys were put by hand in one transaction.
type picture struct {
	name     string
	revision int64
	line     []*mvccpb.KeyValue
}

// reset takes a snapshot.
func (p *picture) reset(revision int64, kvs []*mvccpb.KeyValue) {
	p.revision, p.line = revision, p.line[:0]
	for _, kv := range kvs {
		if candidate(p.name, kv) {
			p.line = append(p.line, kv)
		}
	}
	slices.SortFunc(p.line, older)
}

// change takes all events of one revision.
func (p *picture) change(revision int64, events []*clientv3.Event) {
	p.revision = revision
	for _, ev := range events {
		if !candidate(p.name, ev.Kv) {
			continue
		}
		key := string(ev.Kv.Key)
		p.line = slices.DeleteFunc(p.line, func(kv *mvccpb.KeyValue) bool { return string(kv.Key) == key })
		if ev.Type == mvccpb.PUT {
			where, _ := slices.BinarySearchFunc(p.line, ev.Kv, older)
			p.line = slices.Insert(p.line, where, ev.Kv)
		}
	}
}

// leader is the oldest; nil if nobody stands.
func (p *picture) leader() *mvccpb.KeyValue {
	if len(p.line) == 0 {
		return nil
	}
	return p.line[0]
}

// probe is how to find out whether the watch is deaf: the leader's key, or, where nobody
// leads, what was put last into the range, must be in the picture by the time it is judged.
func (p *picture) probe(begin, end string) (clientv3.Op, func(clientv3.OpResponse) bool) {
	leader := p.leader()
	if leader == nil {
		return clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(1),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend)), p.shows
	}
	return clientv3.OpGet(string(leader.Key), clientv3.WithKeysOnly()), func(answer clientv3.OpResponse) bool {
		if len(answer.Get().Kvs) == 0 {
			_, stands := slices.BinarySearchFunc(p.line, leader, older)
			return !stands
		}
		return p.shows(answer)
	}
}

// shows reports whether the picture has come as far as the keys of an answer.
func (p *picture) shows(answer clientv3.OpResponse) bool {
	for _, kv := range answer.Get().Kvs {
		i, stands := slices.BinarySearchFunc(p.line, kv, older)
		if stands && p.line[i].ModRevision >= kv.ModRevision {
			continue
		}
		if kv.ModRevision > p.revision {
			return false
		}
	}
	return true
}

// older orders a line.
func older(a, b *mvccpb.KeyValue) int {
	return cmp.Or(cmp.Compare(a.CreateRevision, b.CreateRevision), bytes.Compare(a.Key, b.Key))
}

// candidate reports whether a key has a candidate's shape. Any other key in the range is
// no candidate: it may belong to an election whose name starts with this one's.
func candidate(name string, kv *mvccpb.KeyValue) bool {
	_, err := keys.Parse(name, string(kv.Key))
	return err == nil
}

// first reads who leads: the oldest candidate's key alone, or none. Where other keys stand
// before it, everything is read.
func first(ctx context.Context, kv clientv3.KV, name string) (*clientv3.GetResponse, error) {
	begin, end := keys.Range(name)
	eldest := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)}
	resp, err := kv.Get(ctx, begin, append(eldest, clientv3.WithLimit(1))...)
	if err == nil && len(resp.Kvs) > 0 && !candidate(name, resp.Kvs[0]) && resp.More {
		resp, err = kv.Get(ctx, begin, eldest...)
	}
	if err != nil {
		return nil, err
	}
	resp.Kvs = slices.DeleteFunc(resp.Kvs, func(kv *mvccpb.KeyValue) bool { return !candidate(name, kv) })
	if len(resp.Kvs) > 1 {
		resp.Kvs = resp.Kvs[:1]
	}
	return resp, nil
}
