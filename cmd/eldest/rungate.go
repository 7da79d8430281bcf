//go:build unix

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
)

// gate holds back, while a program may run, what would let another candidate lead.
//
// A session that is lost gives its lease back at once, and a candidate that is deposed
// removes what is left of its key: right for a leader that has stopped by then. A program
// is another process, and its end takes a moment. Until then the lease runs on, as if
// nobody had said anything.
type gate struct {
	mu sync.Mutex
	// open is closed while nothing is held back.
	open chan struct{}
	shut bool
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && !g.shut:
		g.open = make(chan struct{})
	case !shut && g.shut:
		close(g.open)
	}
	g.shut = shut
}

// pass blocks while the gate is shut; ctx ends when the request is given up.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return errors.Join(connect.ErrHeld, ctx.Err())
	}
}

// intercept holds back, of the requests of a client, the revocation of leases, and every
// transaction but those that write mailboxes alone: all that a candidate sends during its tenure
// is the removal of its key, and no mailbox lets anybody lead. mailboxes is what the keys of the
// election's begin with.
func (g *gate) intercept(mailboxes string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		held := false
		switch r := req.(type) {
		case *pb.LeaseRevokeRequest:
			held = true
		case *pb.TxnRequest:
			held = !writesMailboxes(r, mailboxes)
		}
		if held {
			if err := g.pass(ctx); err != nil {
				return err
			}
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
}

// writesMailboxes reports whether a transaction writes mailboxes, and nothing else.
func writesMailboxes(r *pb.TxnRequest, mailboxes string) (writes bool) {
	for _, op := range slices.Concat(r.Success, r.Failure) {
		put, del := op.GetRequestPut(), op.GetRequestDeleteRange()
		switch {
		case op.GetRequestRange() != nil:
		case strings.HasPrefix(string(put.GetKey()), mailboxes), len(del.GetRangeEnd()) == 0 && strings.HasPrefix(string(del.GetKey()), mailboxes):
			writes = true
		default:
			return false
		}
	}
	return writes
}
