package sandbox

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/transfer"
)

// What an operator does with etcd. The operator's network has no faults.

// keysOf returns the keys of a participant, the oldest first: a process that was killed may have left
// one. Without a participant it is the action's key.
func (t *task) keysOf(c *candidate) (found []*mvccpb.KeyValue, err error) {
	kvs, _, err := t.in.field.Queue(t.ctx, t.in.cfg.Election)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		if c != nil && string(kv.Value) == c.name || c == nil && string(kv.Key) == t.Key {
			found = append(found, kv)
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case c == nil:
		return nil, feed.Refused("there is no key %q in the queue", t.Key)
	default:
		return nil, feed.Refused("%s has no key: it is not queued now", c.name)
	}
}

// deleteKey is seen by etcd, in which the key does not exist any more.
func (t *task) deleteKey() error {
	found, err := t.keysOf(t.c)
	if err != nil {
		return err
	}
	kv := found[0]
	if t.c == nil {
		t.rename(kv)
	}
	if err := t.in.field.Delete(t.ctx, string(kv.Key), kv.CreateRevision); err != nil {
		return fmt.Errorf("delete %s: %w", kv.Key, err)
	}
	return nil
}

// rename makes an action on a key one on the participant whose key it is: the key is another one each
// time. If there is none, or it is not the key that an action on the participant is about, the action
// is not recorded.
func (t *task) rename(kv *mvccpb.KeyValue) {
	t.once = true
	of := t.era.candidate(string(kv.Value))
	if of == nil {
		return
	}
	if its, err := t.keysOf(of); err == nil && string(its[0].Key) == string(kv.Key) {
		t.On, t.Key, t.once = of.name, "", false
	}
}

// revokeLease is seen by etcd, in which the lease's key does not exist any more.
func (t *task) revokeLease() error {
	found, err := t.keysOf(t.c)
	if err != nil {
		return err
	}
	kv := found[0]
	if kv.Lease == 0 {
		return feed.Refused("%s is not bound to a lease", kv.Key)
	}
	if err := t.in.field.Revoke(t.ctx, kv.Lease, string(kv.Key), kv.CreateRevision); err != nil {
		return fmt.Errorf("revoke the lease %x: %w", kv.Lease, err)
	}
	return nil
}

const (
	// patience is how long a candidate may take to answer a request to requeue or to drain.
	patience = 5 * time.Second
	// drainTime is how long the leader may take to delete its key.
	drainTime = 8 * time.Second
)

// transfer is seen in etcd: the participant has the oldest key.
func (t *task) transfer() error {
	found, err := t.keysOf(t.c)
	if err != nil {
		return err
	}
	target := string(found[len(found)-1].Key) // that of its newest process
	result, err := transfer.To(t.ctx, transfer.Client(t.in.field.All), t.in.cfg.Election, target,
		transfer.Options{Timeout: patience, Drain: drainTime})
	refusal, refused := errors.AsType[*transfer.Refusal](err)
	if refused && !refusal.Unknown && len(result.Moved) == 0 {
		return feed.Refused("%w", err)
	}
	return err
}

// compact is seen by a read at a revision that was compacted, which fails.
func (t *task) compact() error {
	_, now, err := t.in.field.Queue(t.ctx, t.in.cfg.Election)
	if err != nil || now < 2 { // nothing was written yet
		return err
	}
	return t.in.field.CompactTo(t.ctx, now)
}
