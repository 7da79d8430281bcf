package kv

import (
	"context"
	"iter"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// page is how many keys are read in one request.
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

// List reads the keys with a prefix; see kvpb.KV. It reads them page by page, all at the revision
// of the first page, and each page under the guard. So it fails when the tenure ends, also between
// two pages. OUT_OF_RANGE: the history was compacted meanwhile.
func (s *Server) List(r *kvpb.ListRequest, stream grpc.ServerStreamingServer[kvpb.Item]) error {
	for kv, err := range pages(stream.Context(), s.l.KV(), s.space.Data(r.GetPrefix())) {
		if err != nil {
			return answer(err)
		}
		if err := stream.Send(s.space.item(kv)); err != nil {
			return err
		}
	}
	return nil
}

// pages reads all keys with a prefix as of one revision, page by page. An error is the last item.
func pages(ctx context.Context, client clientv3.KV, prefix string) iter.Seq2[*mvccpb.KeyValue, error] {
	return func(yield func(*mvccpb.KeyValue, error) bool) {
		from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
		for revision := int64(0); ; {
			resp, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
			if err != nil {
				yield(nil, err)
				return
			}
			for _, kv := range resp.Kvs {
				if !yield(kv, nil) {
					return
				}
			}
			if !resp.More {
				return
			}
			if revision == 0 { // the header of a later page has the revision at the time of that page
				revision = resp.Header.Revision
			}
			from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00" // the next possible key
		}
	}
}

func (s Space) item(kv *mvccpb.KeyValue) *kvpb.Item {
	key, _ := s.Key(string(kv.Key)) // only keys of the space were read
	return &kvpb.Item{Key: key, Value: kv.Value, Revision: kv.ModRevision}
}
