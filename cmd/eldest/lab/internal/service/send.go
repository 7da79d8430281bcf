package service

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// Send sends the attempt once and fills in what becomes of it. It blocks until the answer
// or the end of ctx, and returns the error that the call ended with.
func (a *Attempt) Send(ctx context.Context, conn grpc.ClientConnInterface, options ...grpc.CallOption) error {
	kv := kvpb.NewKVClient(conn)
	var to peer.Peer // stays empty where no connection was given the request
	options = append(options, grpc.Peer(&to))
	a.Begin = time.Now().Round(0)
	var receipt *kvpb.Receipt
	var err error
	switch a.Method {
	case Put:
		var r *kvpb.PutResponse
		r, err = kv.Put(ctx, &kvpb.PutRequest{RequestId: a.ID, Key: a.Key, Value: []byte(a.Value)}, options...)
		receipt = r.GetReceipt()
	case Append:
		var r *kvpb.AppendResponse
		r, err = kv.Append(ctx, &kvpb.AppendRequest{RequestId: a.ID, Key: a.Key, Value: []byte(a.Value)}, options...)
		receipt = r.GetReceipt()
	case Delete:
		var r *kvpb.DeleteResponse
		r, err = kv.Delete(ctx, &kvpb.DeleteRequest{RequestId: a.ID, Key: a.Key}, options...)
		receipt = r.GetReceipt()
	case Get:
		var item *kvpb.Item
		item, err = kv.Get(ctx, &kvpb.GetRequest{Key: a.Key}, options...)
		a.Found, a.Revision = string(item.GetValue()), item.GetRevision()
	}
	a.Ended(receipt, err, to.Addr != nil)
	return err
}

// Ended fills in how the attempt ended: now, with a receipt or an error. sent is whether
// a connection was given the request.
func (a *Attempt) Ended(receipt *kvpb.Receipt, err error, sent bool) {
	a.At = time.Now().Round(0)
	if receipt != nil {
		a.Token, a.Revision = eldest.Token(receipt.GetToken()), receipt.GetRevision()
	}
	a.judge(err, sent)
}
