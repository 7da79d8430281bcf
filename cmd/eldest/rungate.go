package main

import (
	"context"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/cmd/eldest/internal/gate"
)

// hold holds back, while a program may run, what would let another candidate lead.
//
// A session that is lost revokes its lease at once, and a candidate that is deposed
// removes what is left of its key: right for a leader that has stopped by then. A program
// is another process, and its end takes a moment. Until then the lease is left to run on.
type hold struct{ gate.Gate }

// intercept holds back, of the requests of a client, the revocation of leases, and every
// transaction but those that write request keys alone: all that a candidate sends during its tenure
// is the removal of its key, and no request key lets a candidate lead. requests is what the request
// keys of the election begin with.
func (g *hold) intercept(requests string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		held := false
		switch r := req.(type) {
		case *pb.LeaseRevokeRequest:
			held = true
		case *pb.TxnRequest:
			held = !writesRequests(r, requests)
		}
		if held {
			if err := g.Pass(ctx); err != nil {
				return err
			}
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
}

// writesRequests reports whether a transaction writes request keys, and nothing else.
func writesRequests(r *pb.TxnRequest, requests string) (writes bool) {
	for _, op := range slices.Concat(r.Success, r.Failure) {
		put, del := op.GetRequestPut(), op.GetRequestDeleteRange()
		switch {
		case op.GetRequestRange() != nil:
		case strings.HasPrefix(string(put.GetKey()), requests), len(del.GetRangeEnd()) == 0 && strings.HasPrefix(string(del.GetKey()), requests):
			writes = true
		default:
			return false
		}
	}
	return writes
}
