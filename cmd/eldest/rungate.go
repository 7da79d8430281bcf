package main

import (
	"context"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/cmd/eldest/internal/gate"
)

// hold blocks, while a program may run, the requests after which another candidate could lead.
//
// A lost session revokes its lease at once, and a deposed candidate removes what is left of its key.
// That is right for a leader that has stopped by then. A program is another process, and its end
// takes a moment. Until then the lease is not revoked.
type hold struct{ gate.Gate }

// intercept blocks these requests of a client: the revocation of leases, and every transaction that
// does not write only request keys. A candidate's only other transaction during its tenure is the
// removal of its key, and no request key lets a candidate lead. requests is the prefix of the request
// keys of the election.
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
