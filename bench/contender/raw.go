package contender

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What the contenders share that are made of bare requests.

var errEnded = errors.New("the watch has ended")

// errCompareFailed is returned for a write that was refused.
var errCompareFailed = errors.New("the leader's key is gone: the write was refused")

// rawSession is a lease that etcd's client keeps alive.
type rawSession struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
	// lost is closed when the client has given the lease up.
	lost   chan struct{}
	cancel context.CancelFunc
}

func openRaw(ctx context.Context, client *clientv3.Client, ttl time.Duration) (*rawSession, error) {
	granted, err := client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return nil, err
	}
	alive, cancel := context.WithCancel(context.Background())
	replies, err := client.KeepAlive(alive, granted.ID)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &rawSession{client: client, lease: granted.ID, lost: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(s.lost)
		for range replies {
			continue // the client reads the TTL itself
		}
	}()
	return s, nil
}

func (s *rawSession) Close(ctx context.Context) error {
	s.cancel()
	<-s.lost
	_, err := s.client.Revoke(ctx, s.lease)
	return err
}

// key is laid out as in etcd's own elections.
func (s *rawSession) key(election string) string { return fmt.Sprintf("%s/%x", election, s.lease) }

// register writes a candidate's key and returns its create revision and the nearest
// older key, "" if there is none.
func (s *rawSession) register(ctx context.Context, election, value string) (token int64, ahead string, err error) {
	resp, err := s.client.Txn(ctx).Then(
		clientv3.OpPut(s.key(election), value, clientv3.WithLease(s.lease)),
		clientv3.OpGet(election+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend), clientv3.WithLimit(2)),
	).Commit()
	if err != nil {
		return 0, "", err
	}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		if kv.CreateRevision < resp.Header.Revision {
			ahead = string(kv.Key)
		}
	}
	return resp.Header.Revision, ahead, nil
}

// putWhile writes while the key of a leader is in the life that token names.
func putWhile(ctx context.Context, kv clientv3.KV, leader string, token int64, put clientv3.Op) error {
	resp, err := kv.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(leader), "=", token)).
		Then(put).
		Commit()
	if err == nil && !resp.Succeeded {
		err = errCompareFailed
	}
	return err
}

// oldest is the key of the candidate with the lowest create revision, "" for none.
func oldest(kvs []*mvccpb.KeyValue) string {
	var first *mvccpb.KeyValue
	for _, kv := range kvs {
		if first == nil || kv.CreateRevision < first.CreateRevision {
			first = kv
		}
	}
	if first == nil {
		return ""
	}
	return string(first.Key)
}

// watchFeed is a watch of its own on a whole election, for a single observer.
type watchFeed struct {
	ctx    context.Context
	events clientv3.WatchChan
}

// watchAll opens it, and blocks until it is in place.
func watchAll(ctx context.Context, live context.Context, client *clientv3.Client, election string) (watchFeed, error) {
	// The client's Watch blocks until the server has answered.
	live, cancel := context.WithCancel(live)
	defer context.AfterFunc(ctx, cancel)()
	events := client.Watch(clientv3.WithRequireLeader(live), election+"/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	select {
	case resp, ok := <-events:
		if !ok {
			return watchFeed{}, errEnded
		}
		return watchFeed{ctx: live, events: events}, resp.Err()
	case <-ctx.Done():
		return watchFeed{}, context.Cause(ctx)
	}
}

// departure blocks until a key was deleted; joined says that a new one will do, too.
func (f watchFeed) departure(ctx context.Context, joined bool) error {
	for {
		select {
		case resp, ok := <-f.events:
			switch {
			case !ok:
				return errEnded
			case resp.Err() != nil:
				return resp.Err()
			}
			for _, e := range resp.Events {
				if joined || e.Type == clientv3.EventTypeDelete {
					return nil
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
