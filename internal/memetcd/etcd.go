package memetcd

import (
	"bytes"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// Etcd is an etcd in memory. Made by New, ended by Close. All methods are safe for concurrent use.
//
// Invariant: revision is that of the newest request that changed something, and 1 before that.
type Etcd struct {
	mu       sync.Mutex
	revision int64
	// writing is true while a request that has changed something is carried out: its changes have
	// the next revision.
	writing bool
	// versions has all versions of each key, the oldest first. Version 0 is a deletion.
	versions map[string][]*mvccpb.KeyValue
	// log has all versions of all keys, in the order of the changes.
	log    []*mvccpb.KeyValue
	leases map[int64]*lease
	last   int64 // the last lease ID that was given
	// news is closed when something has changed, and replaced.
	news chan struct{}
}

// made counts the etcds of this process.
var made atomic.Int64

// New returns an empty etcd. Its lease IDs differ from those of all others in this process, as those of
// real ones do: what a session remembers of its lease is kept by the ID.
func New() *Etcd {
	return &Etcd{last: made.Add(1) << 32, revision: 1, versions: map[string][]*mvccpb.KeyValue{}, leases: map[int64]*lease{}, news: make(chan struct{})}
}

// Close stops the expiry of leases.
func (e *Etcd) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.leases {
		l.expiry.Stop()
	}
	clear(e.leases)
}

// header returns the header of a response.
func (e *Etcd) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 1, MemberId: 1, RaftTerm: 1, Revision: e.at()}
}

// at returns the revision of what a request reads: what it has changed itself is included.
func (e *Etcd) at() int64 {
	if e.writing {
		return e.revision + 1
	}
	return e.revision
}

// end ends a request that may have changed something. The caller holds the mutex.
func (e *Etcd) end() {
	if !e.writing {
		return
	}
	e.revision, e.writing = e.revision+1, false
	e.wake()
}

// wake wakes all watches. The caller holds the mutex.
func (e *Etcd) wake() {
	close(e.news)
	e.news = make(chan struct{})
}

// set adds a version of a key. The caller holds the mutex.
func (e *Etcd) set(kv *mvccpb.KeyValue) {
	e.writing = true
	kv.ModRevision = e.at()
	e.log = append(e.log, kv)
	e.versions[string(kv.Key)] = append(e.versions[string(kv.Key)], kv)
}

// undo takes back what the present request has changed. The caller holds the mutex.
func (e *Etcd) undo() {
	n := len(e.log)
	for ; n > 0 && e.log[n-1].ModRevision > e.revision; n-- {
		key := string(e.log[n-1].Key)
		e.versions[key] = e.versions[key][:len(e.versions[key])-1]
	}
	e.log, e.writing = e.log[:n], false
}

// newest returns the present version of a key; nil if it does not exist.
func (e *Etcd) newest(key string) *mvccpb.KeyValue { return existing(e.versions[key], 0) }

// existing returns the version at a revision, 0 for the newest; nil if the key did not exist.
func existing(versions []*mvccpb.KeyValue, revision int64) *mvccpb.KeyValue {
	for i := len(versions) - 1; i >= 0; i-- {
		if v := versions[i]; revision == 0 || v.ModRevision <= revision {
			if v.Version == 0 {
				return nil
			}
			return v
		}
	}
	return nil
}

// clone returns a copy, so that no caller shares memory with the store. As on the wire, an empty
// value is nil.
func clone(kv *mvccpb.KeyValue) *mvccpb.KeyValue {
	if kv == nil {
		return nil
	}
	return &mvccpb.KeyValue{
		Key: copied(kv.Key), Value: copied(kv.Value), Lease: kv.Lease,
		CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version,
	}
}

func copied(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return bytes.Clone(b)
}
