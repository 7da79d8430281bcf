package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// ErrNoRecord is returned by ParseEntry for a key that holds no record.
var ErrNoRecord = errors.New("not a record of the trail")

// Entry is one record of the trail, as it is in etcd.
type Entry struct {
	*kvpb.Record
	// EtcdKey is the etcd key of the record.
	EtcdKey string
	// Revision is the etcd revision at which the record, and with it the write, was
	// applied. Receipt.revision is the same.
	Revision int64
	// Untouched is set if the record was not written again.
	Untouched bool
}

// ParseEntry reads a record from an etcd key and its value. The error wraps ErrNoRecord.
func (s Space) ParseEntry(kv *mvccpb.KeyValue) (Entry, error) {
	if !strings.HasPrefix(string(kv.Key), s.Trail()) {
		return Entry{}, fmt.Errorf("key %q: %w", kv.Key, ErrNoRecord)
	}
	e := Entry{Record: &kvpb.Record{}, EtcdKey: string(kv.Key), Revision: kv.CreateRevision, Untouched: kv.Version == 1}
	if err := proto.Unmarshal(kv.Value, e.Record); err != nil {
		return Entry{}, fmt.Errorf("key %q: %w: %w", kv.Key, ErrNoRecord, err)
	}
	return e, nil
}

// ReadTrail reads the whole trail as of one revision and returns it in the order in which the
// writes were applied. Any client may call it: it needs no tenure, and is not guarded. It blocks
// until all is read or ctx ends.
func (s Space) ReadTrail(ctx context.Context, kv clientv3.KV) ([]Entry, error) {
	var trail []Entry
	for kv, err := range pages(ctx, kv, s.Trail()) {
		var e Entry
		if err == nil {
			e, err = s.ParseEntry(kv)
		}
		if err != nil {
			return nil, fmt.Errorf("eldest: read the trail: %w", err)
		}
		trail = append(trail, e)
	}
	// The keys are in the order in which requests were begun.
	slices.SortFunc(trail, func(a, b Entry) int { return cmp.Compare(a.Revision, b.Revision) })
	return trail, nil
}
