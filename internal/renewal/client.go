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
	// Term is the Raft term of the member that answered; 0: the answer has none, as that of a gRPC
	// proxy.
	Term uint64
	// TTL is the TTL that was granted; 0: the lease does not exist.
	TTL time.Duration
}

func answer(term uint64, seconds int64) Answer {
	return Answer{Term: term, TTL: time.Duration(max(0, seconds)) * time.Second}
}

// Once renews a lease by a single request of the client. It blocks until the answer arrives, or ctx
// ends.
func Once(ctx context.Context, through clientv3.Lease, id clientv3.LeaseID) (Answer, error) {
	resp, err := through.KeepAliveOnce(ctx, id)
	switch {
	case rpcerr.Is(err, rpctypes.ErrLeaseNotFound):
		return Answer{}, nil // a definite answer: the lease does not exist
	case err != nil:
		return Answer{}, err
	case resp == nil:
		return Answer{}, nil
	default:
		return answer(resp.GetRaftTerm(), resp.TTL), nil
	}
}

// Client is what the sessions of one client share. Made by Of, released by Release.
type Client struct {
	// Stream renews on one stream, if it is Usable.
	Stream *Stream
	// Majority confirms renewals.
	Majority *Majority

	way way
}

// way identifies the sessions that share a Client.
type way struct{ lease, majority any }

var clients lent.Things[way, *Client]

// plainLease is the type of a client's own Lease that is not wrapped.
var plainLease = reflect.TypeOf(clientv3.NewLeaseFromLeaseClient(nil, nil, 0))

// Of returns the Client that is shared by all sessions that renew through lease and are confirmed
// by members. Each Of must be followed by one Release.
func Of(lease clientv3.Lease, members Members) *Client {
	w := way{lease, members}
	if !reflect.ValueOf(w).Comparable() {
		w = way{lease: new(int)} // not shared
	}
	return clients.Take(w, func() *Client {
		c := &Client{Stream: newStream(plain(lease)), way: w}
		c.Majority = newMajority(members, c.Stream.busy)
		c.Stream.idle = c.Majority.Flush
		return c
	})
}

// Streamer is a lease that is not a client's own and renews on streams, such as one of a test.
type Streamer interface {
	// KeepAliveStream opens a stream that ends with ctx.
	KeepAliveStream(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error)
}

// plain returns the function that opens a stream of a client whose Lease is etcd's own; nil if it is
// wrapped, for example by a namespace: then the client can only be used through its interfaces.
func plain(lease clientv3.Lease) func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error) {
	if s, ok := lease.(Streamer); ok {
		return s.KeepAliveStream
	}
	client, ok := lease.(*clientv3.Client)
	if !ok || reflect.TypeOf(client.Lease) != plainLease || client.ActiveConnection() == nil {
		return nil
	}
	return func(ctx context.Context) (pb.Lease_LeaseKeepAliveClient, error) {
		return pb.NewLeaseClient(client.ActiveConnection()).LeaseKeepAlive(ctx)
	}
}

// Release releases the Client. No request of the session may be under way. The last Release ends
// the stream, and blocks until no goroutine is left.
func (c *Client) Release() {
	if clients.Return(c.way) {
		c.Stream.close()
		c.Majority.tasks.Wait()
	}
}
