package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/transfer"
)

// What an operator does with etcd. The operator's network has no faults.

// keysOf returns the participant's keys, the oldest first: a process that was killed may have left
// one. Without a participant it is the action's key.
func (t *task) keysOf(ctx context.Context) (found []*mvccpb.KeyValue, err error) {
	kvs, _, err := t.in.field.Queue(ctx, t.in.cfg.Election)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		if t.c != nil && string(kv.Value) == t.c.name || t.c == nil && string(kv.Key) == t.a.Key {
			found = append(found, kv)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case t.c == nil:
		return nil, feed.Refused("there is no key %q in the queue", t.a.Key)
	default:
		return nil, feed.Refused("%s has no key: it is not queued now", t.c.name)
	}
}

// deleteKey is seen by etcd, in which the key does not exist any more.
func (t *task) deleteKey(ctx context.Context) error {
	found, err := t.keysOf(ctx)
	if err != nil {
		return err
	}
	if t.c == nil {
		t.rename(ctx, found[0])
	}
	if err := t.in.field.Delete(ctx, string(found[0].Key), found[0].CreateRevision); err != nil {
		return fmt.Errorf("delete %s: %w", found[0].Key, err)
	}
	t.in.queue.look()
	return nil
}

// rename makes an action on a key one on the participant whose key it is: the key is another one each
// time. If there is none, or it is not the key that an action on the participant is about, the action
// is not recorded.
func (t *task) rename(ctx context.Context, kv *mvccpb.KeyValue) {
	t.in.mu.Lock()
	of := t.in.candidates[string(kv.Value)]
	t.in.mu.Unlock()
	t.once = true
	if of == nil {
		return
	}
	named := &task{in: t.in, a: t.a, c: of}
	if its, err := named.keysOf(ctx); err == nil && string(its[0].Key) == string(kv.Key) {
		t.a.On, t.a.Key, t.once = of.name, "", false
	}
}

// revokeLease is seen by etcd, in which the lease's key does not exist any more.
func (t *task) revokeLease(ctx context.Context) error {
	found, err := t.keysOf(ctx)
	if err != nil {
		return err
	}
	kv := found[0]
	if kv.Lease == 0 {
		return feed.Refused("%s is not bound to a lease", kv.Key)
	}
	if err := t.in.field.Revoke(ctx, kv.Lease, string(kv.Key), kv.CreateRevision); err != nil {
		return fmt.Errorf("revoke the lease %x: %w", kv.Lease, err)
	}
	t.in.queue.look()
	return nil
}

const (
	// patience is how long a candidate may take to answer a request to requeue or to drain.
	patience = 5 * time.Second
	// drainTime is how long the leader may take to delete its key.
	drainTime = 8 * time.Second
)

// transfer is seen in etcd: the participant has the oldest key.
func (t *task) transfer(ctx context.Context) error {
	found, err := t.keysOf(ctx)
	if err != nil {
		return err
	}
	target := string(found[len(found)-1].Key) // that of its newest process
	result, err := transfer.To(ctx, transfer.Client(t.in.field.All), t.in.cfg.Election, target,
		transfer.Options{Timeout: patience, Drain: drainTime})
	t.in.queue.look()
	var refusal *transfer.Refusal
	if errors.As(err, &refusal) && !refusal.Unknown && len(result.Moved) == 0 {
		return feed.Refused("%w", err)
	}
	return err
}

// compact is seen by a read at a revision that was compacted, which fails.
func (t *task) compact(ctx context.Context) error {
	_, now, err := t.in.field.Queue(ctx, t.in.cfg.Election)
	if err != nil || now < 2 { // nothing was written yet
		return err
	}
	return t.in.field.CompactTo(ctx, now)
}
