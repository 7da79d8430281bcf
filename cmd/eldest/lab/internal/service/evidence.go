package service

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Change is one key that one etcd revision put or deleted. What else happened is
// somebody's report; this is what etcd did.
type Change struct {
	Revision int64
	Key      string
	Value    []byte
	Deleted  bool
	// Create is the revision that made the key, Version how many times it was put
	// since; both 0 for a deletion.
	Create, Version int64
}

// evidenceTime bounds the reading of the evidence.
const evidenceTime = 30 * time.Second

// Changes reads all that ever happened in etcd, in the order in which it happened. It
// blocks until it has everything up to the present revision, or ctx ends.
func Changes(ctx context.Context, client *clientv3.Client) ([]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	// Linearizable: nothing that was acknowledged to anybody is later than this.
	now, err := client.Get(ctx, "present")
	if err != nil {
		return nil, fmt.Errorf("reading the evidence: %w", err)
	}
	var all []Change
	if now.Header.Revision <= 1 {
		return nil, nil // nothing ever happened
	}
	for resp := range client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(1)) {
		if err := resp.Err(); err != nil {
			return nil, fmt.Errorf("reading the evidence: %w", err)
		}
		for _, ev := range resp.Events {
			all = append(all, Change{
				Revision: ev.Kv.ModRevision, Key: string(ev.Kv.Key), Value: ev.Kv.Value, Deleted: ev.Type == clientv3.EventTypeDelete,
				Create: ev.Kv.CreateRevision, Version: ev.Kv.Version,
			})
		}
		// A revision's changes come together, and each revision changes something.
		if n := len(all); n > 0 && all[n-1].Revision >= now.Header.Revision {
			return all, nil
		}
	}
	return nil, fmt.Errorf("reading the evidence: %w", context.Cause(ctx))
}
