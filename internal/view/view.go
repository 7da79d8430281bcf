package view

import (
	"bytes"
	"cmp"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// View is a queue. Keys that are not candidates' keys are ignored: they may belong to an election
// whose name starts with this one's and a slash.
//
// Invariant: Queue is sorted by create revision, and by key if keys were put manually in one
// transaction, strictly. It is the queue as it was at Revision, and has nothing of any other
// revision.
type View struct {
	Election string
	// Foreign, if set, is called for each key that is not a candidate's, in a snapshot or put.
	Foreign  func(key string)
	Revision int64
	Queue    []*mvccpb.KeyValue
}

// Reset replaces the view by a snapshot, in which each key occurs once.
func (v *View) Reset(revision int64, kvs []*mvccpb.KeyValue) {
	v.Revision, v.Queue = revision, v.Queue[:0]
	for _, kv := range kvs {
		if v.candidate(kv) {
			v.Queue = append(v.Queue, kv)
		}
	}
	slices.SortFunc(v.Queue, older)
}

// Change applies all events of one revision.
func (v *View) Change(revision int64, events []*clientv3.Event) {
	v.Revision = revision
	for _, ev := range events {
		if ev.Type == mvccpb.DELETE {
			v.remove(ev.Kv.Key)
		} else if v.candidate(ev.Kv) {
			v.put(ev.Kv)
		}
	}
}

func (v *View) put(kv *mvccpb.KeyValue) {
	at, present := v.find(kv)
	if !present {
		v.Queue = slices.Insert(v.Queue, at, kv)
		return
	}
	v.Queue[at] = kv
}

func (v *View) remove(key []byte) {
	// A deletion event does not name the life that ended, so the key is searched for. The leader's
	// key, at the front, is found at once.
	if i := slices.IndexFunc(v.Queue, func(kv *mvccpb.KeyValue) bool { return bytes.Equal(kv.Key, key) }); i >= 0 {
		v.Queue = slices.Delete(v.Queue, i, i+1)
	}
}

func (v *View) find(kv *mvccpb.KeyValue) (int, bool) {
	return slices.BinarySearchFunc(v.Queue, kv, older)
}

// Leader returns the oldest candidate; nil if there is none.
func (v *View) Leader() *mvccpb.KeyValue {
	if len(v.Queue) == 0 {
		return nil
	}
	return v.Queue[0]
}

// Probe returns a read that checks whether the changes still arrive, and a function that reports
// whether the view is as new as its answer. It reads the leader's key; if there is no leader, the
// key of the range that was put last (there may be foreign keys).
func (v *View) Probe() (clientv3.Op, func(clientv3.OpResponse) bool) {
	leader := v.Leader()
	if leader == nil {
		begin, end := keys.Range(v.Election)
		return clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(1),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend)), v.shows
	}
	return clientv3.OpGet(string(leader.Key), clientv3.WithKeysOnly()), func(answer clientv3.OpResponse) bool {
		if len(answer.Get().Kvs) == 0 {
			_, present := v.find(leader)
			return !present
		}
		return v.shows(answer)
	}
}

// shows reports whether the view is as new as the keys of an answer.
func (v *View) shows(answer clientv3.OpResponse) bool {
	for _, kv := range answer.Get().Kvs {
		at, present := v.find(kv)
		if present && v.Queue[at].ModRevision >= kv.ModRevision {
			continue
		}
		if kv.ModRevision > v.Revision {
			return false
		}
	}
	return true
}

// candidate reports whether a key is a candidate's.
func (v *View) candidate(kv *mvccpb.KeyValue) bool {
	ours := Candidate(v.Election, kv)
	if !ours && v.Foreign != nil {
		v.Foreign(string(kv.Key))
	}
	return ours
}

// Candidate reports whether a key is that of a candidate of the election.
func Candidate(election string, kv *mvccpb.KeyValue) bool {
	_, err := keys.Parse(election, string(kv.Key))
	return err == nil
}

// older orders a queue.
func older(a, b *mvccpb.KeyValue) int {
	return cmp.Or(cmp.Compare(a.CreateRevision, b.CreateRevision), bytes.Compare(a.Key, b.Key))
}

// Queue returns the candidates among an election's keys, in the same order, and the other keys.
func Queue(election string, kvs []*mvccpb.KeyValue) (queue []eldest.Candidate, foreign []string) {
	for _, kv := range kvs {
		key := string(kv.Key)
		lease, err := keys.Parse(election, key)
		if err != nil {
			foreign = append(foreign, key)
			continue
		}
		queue = append(queue, eldest.Candidate{
			Key: key, Lease: lease, Token: eldest.Token(kv.CreateRevision), ModRevision: kv.ModRevision, Value: kv.Value,
		})
	}
	return queue, foreign
}
