package kv

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// page is how many keys List asks for at a time.
const page = 256

// Get reads one key; see kvpb.KV.
func (s *Server) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.Item, error) {
	if err := checkKey(r.GetKey()); err != nil {
		return nil, err
	}
	resp, err := s.l.KV().Get(ctx, s.space.Data(r.GetKey()))
	switch {
	case err != nil:
		return nil, answer(err)
	case len(resp.Kvs) == 0:
		return nil, missing(r.GetKey())
	}
	return s.space.item(resp.Kvs[0]), nil
}

// List reads the keys with a prefix; see kvpb.KV. It asks for them page by page, all at
// the revision of the first page, and each page under the guard: it ends with the
// tenure, in the middle if need be. OUT_OF_RANGE: the history was compacted meanwhile.
func (s *Server) List(r *kvpb.ListRequest, stream grpc.ServerStreamingServer[kvpb.Item]) error {
	from := s.space.Data(r.GetPrefix())
	end := clientv3.GetPrefixRangeEnd(from)
	for revision := int64(0); ; {
		resp, err := s.l.KV().Get(stream.Context(), from,
			clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
		if err != nil {
			return answer(err)
		}
		for _, kv := range resp.Kvs {
			if err := stream.Send(s.space.item(kv)); err != nil {
				return err
			}
		}
		if !resp.More {
			return nil
		}
		if revision == 0 { // the header of a later page has the revision of its own time
			revision = resp.Header.Revision
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00" // the next possible key
	}
}

func (s Space) item(kv *mvccpb.KeyValue) *kvpb.Item {
	key, _ := s.Key(string(kv.Key)) // it was asked for within the space
	return &kvpb.Item{Key: key, Value: kv.Value, Revision: kv.ModRevision}
}
