package renewal

import (
	"context"
	"reflect"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/lent"
	"github.com/eldest-io/eldest/internal/rpcerr"
)

// Answer is the answer to a renewal.
type Answer struct {
	// Term is the Raft term of the member that answered; 0: it said none, as a gRPC proxy does.
	Term uint64
	// TTL is what was granted; 0: the lease does not exist.
	TTL time.Duration
}

func answer(term uint64, seconds int64) Answer {
	return Answer{Term: term, TTL: time.Duration(max(0, seconds)) * time.Second}
}

// Once renews a lease by a single request of the client. It blocks until the answer, or ctx ends.
func Once(ctx context.Context, through clientv3.Lease, id clientv3.LeaseID) (Answer, error) {
	resp, err := through.KeepAliveOnce(ctx, id)
	switch {
	case rpcerr.Is(err, rpctypes.ErrLeaseNotFound):
		return Answer{}, nil // an answer, and as certain as any: no lease
	case err != nil:
		return Answer{}, err
	case resp == nil:
		return Answer{}, nil
	default:
		return answer(resp.GetRaftTerm(), resp.TTL), nil
	}
}

// Client is what the sessions of one client share. Made by Of, ended by Release.
type Client struct {
	// Stream renews on one stream; nil: the client can only be used through its interfaces.
	Stream *Stream
	// Majority confirms.
	Majority *Majority

	way way
}

// way is what the sessions that share have in common.
type way struct{ lease, majority any }

var clients lent.Things[way, *Client]

// plainLease is the type of a client's own Lease, which nobody has wrapped.
var plainLease = reflect.TypeOf(clientv3.NewLeaseFromLeaseClient(nil, nil, 0))

// Of returns what the sessions share that renew through a lease and are confirmed by a majority.
// Each Of is followed by one Release.
func Of(lease clientv3.Lease, members Members) *Client {
	w := way{lease, members}
	if !reflect.ValueOf(lease).Comparable() || !reflect.ValueOf(members).Comparable() {
		w = way{new(int), nil} // shared with nobody
	}
	return clients.Take(w, func() *Client {
		c := &Client{Stream: plain(lease), way: w}
		c.Majority = newMajority(members, c.Stream.busy)
		if c.Stream != nil {
			c.Stream.idle = c.Majority.Flush
		}
		return c
	})
}

// Streamer is a lease other than a client's own that renews on streams, such as one of a test.
type Streamer interface {
	// KeepAliveStream opens a stream that ends with ctx.
	KeepAliveStream(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error)
}

// plain returns the stream of a client whose Lease is etcd's own, not one that is wrapped, as that
// of a namespace is.
func plain(lease clientv3.Lease) *Stream {
	if s, ok := lease.(Streamer); ok {
		return newStream(s.KeepAliveStream)
	}
	client, ok := lease.(*clientv3.Client)
	if !ok || reflect.TypeOf(client.Lease) != plainLease || client.ActiveConnection() == nil {
		return nil
	}
	return newStream(func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error) {
		return pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(ctx)
	})
}

// Release gives it back, once nothing of the session is under way. The last one ends the stream,
// and blocks until no goroutine is left.
func (c *Client) Release() {
	if clients.Return(c.way) {
		c.Stream.close()
		c.Majority.tasks.Wait()
	}
}
