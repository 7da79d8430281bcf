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

var (
	errEnded    = errors.New("the watch has ended")
	errResigned = errors.New("resigned")
	errLost     = errors.New("the client has given the lease up")
)

// rawSession is a lease that etcd's client keeps alive. Its contenders make candidates.
type rawSession struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
	// live ends when the client has given the lease up, or stop was called; over is
	// closed then.
	live context.Context
	stop context.CancelFunc
	over chan struct{}
}

func openRaw(ctx context.Context, client *clientv3.Client, ttl time.Duration) (*rawSession, error) {
	granted, err := client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return nil, err
	}
	alive, stop := context.WithCancel(context.Background())
	replies, err := client.KeepAlive(alive, granted.ID)
	if err != nil {
		stop()
		return nil, err
	}
	live, lost := context.WithCancelCause(context.Background())
	s := &rawSession{client: client, lease: granted.ID, live: live, stop: stop, over: make(chan struct{})}
	go func() {
		defer close(s.over)
		for range replies {
			continue // the client reads the TTL itself
		}
		lost(errLost)
	}()
	return s, nil
}

func (s *rawSession) Lease() clientv3.LeaseID { return s.lease }
func (s *rawSession) Usable() bool            { return s.live.Err() == nil }

func (s *rawSession) Close(ctx context.Context) error {
	s.Abandon()
	_, err := s.client.Revoke(ctx, s.lease)
	return err
}

func (s *rawSession) Abandon() {
	s.stop()
	<-s.over
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

// tenure is that of a contender whose package has no type for one. It ends with the
// session, or by Resign.
type tenure struct {
	session Session
	client  *clientv3.Client
	key     string
	token   int64
	ctx     context.Context
	end     context.CancelCauseFunc
	resign  func(context.Context) error
}

// newTenure makes one that ends with live, the session's context, at the latest.
func newTenure(live context.Context, s Session, client *clientv3.Client, key string, token int64, resign func(context.Context) error) *tenure {
	t := &tenure{session: s, client: client, key: key, token: token, resign: resign}
	t.ctx, t.end = context.WithCancelCause(live)
	return t
}

func (t *tenure) Key() string              { return t.key }
func (t *tenure) Token() int64             { return t.token }
func (t *tenure) Holds() bool              { return t.session.Usable() && t.ctx.Err() == nil }
func (t *tenure) Context() context.Context { return t.ctx }

func (t *tenure) Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	return Guarded(ctx, t.client, t.key, t.token, op)
}

func (t *tenure) Resign(ctx context.Context) error {
	t.end(errResigned)
	return t.resign(ctx)
}

// tenure is one with a key of the session, which its owner deletes to resign.
func (s *rawSession) tenure(of Session, key string, token int64) *tenure {
	return newTenure(s.live, of, s.client, key, token, func(ctx context.Context) error {
		_, err := s.client.Delete(ctx, key)
		return err
	})
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

// closed reports whether a channel is.
func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
