package actor

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/keys"
)

// Defects a participant can be told to have, so that the harness can be seen to find them.
const (
	// Overstay is to be sure of a tenure that is over, as if the deadline were
	// counted from the receipt of a renewal, only worse.
	Overstay = "overstay"
	// Unguarded is to write without the guard, and to go on for a while.
	Unguarded = "unguarded"
	// Linger is to leave a key in the queue after a tenure, which nobody stands for.
	Linger = "linger"
	// Forget is to leave a watch open after a tenure.
	Forget = "forget"
	// Perfect is to stand with a perfect clock, whichever one it was given.
	Perfect = "perfect"
)

// Defects lists them.
var Defects = []string{Overstay, Unguarded, Linger, Forget, Perfect}

// defective makes a tenure defective.
func defective(t contender.Tenure, defect string, client *clientv3.Client, ttl time.Duration) contender.Tenure {
	d := &broken{Tenure: t, defect: defect, client: client, over: make(chan struct{})}
	if defect != Overstay && defect != Unguarded {
		return t
	}
	go func() {
		defer close(d.over)
		<-t.Context().Done()
		time.Sleep(2 * ttl)
	}()
	return d
}

// broken is a tenure that does not notice its end in time.
type broken struct {
	contender.Tenure
	defect string
	client *clientv3.Client
	over   chan struct{}
}

func (b *broken) Holds() bool {
	if b.defect != Overstay {
		return b.Tenure.Holds()
	}
	select {
	case <-b.over:
		return false
	default:
		return true
	}
}

func (b *broken) Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	if b.defect != Unguarded {
		return b.Tenure.Do(ctx, op)
	}
	return b.client.Txn(ctx).Then(op).Commit()
}

// late commits without asking anything but etcd, as a request that was under way when the
// tenure ended.
func late(ctx context.Context, client *clientv3.Client, t contender.Tenure, op clientv3.Op) (*clientv3.TxnResponse, error) {
	b, ok := t.(*broken)
	if !ok || b.defect != Unguarded {
		return contender.Guarded(ctx, client, t.Key(), t.Token(), op)
	}
	select {
	case <-b.over: // by then somebody else leads
	case <-ctx.Done():
	}
	return client.Txn(ctx).Then(op).Commit()
}

// forget leaves a watch, which nothing but the client's end will end.
func forget(client *clientv3.Client, election string) {
	events := client.Watch(context.Background(), keys.Prefix(election))
	go func() {
		for range events { // nobody wants to know
		}
	}()
}

// linger leaves a candidate's key that nobody stands for, on a lease that lives on for a
// long time.
func linger(client *clientv3.Client, election string) {
	ctx, cancel := context.WithTimeout(client.Ctx(), requestTimeout)
	defer cancel()
	granted, err := client.Grant(ctx, 600)
	if err != nil {
		return // another tenure ends in a moment
	}
	_, _ = client.Put(ctx, keys.Candidate(election, int64(granted.ID)), "nobody", clientv3.WithLease(granted.ID))
}
