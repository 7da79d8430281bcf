package kv

import (
	"context"
	"fmt"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
)

// Server is the service in one tenure: kvpb.KVServer. New makes one for each tenure; when the
// tenure has ended, it refuses every request. Its methods block until etcd has answered or their
// context ends, so a request without a deadline may take as long as the tenure. Safe for concurrent
// use.
type Server struct {
	kvpb.UnimplementedKVServer
	l     *elector.Leadership
	space Space
	// written counts the records of this tenure.
	written atomic.Int64
}

// New opens the service in a tenure: it writes the tenure's first record, in one request, and
// blocks until the record is written or ctx ends. The error wraps eldest.ErrNotLeading or
// ErrDeposed if the tenure is over, and eldest.ErrInvalid if the tenure has a server already. It
// wraps eldest.ErrOutcomeUnknown if the record may have been written nevertheless: then the tenure
// cannot be served.
func New(ctx context.Context, l *elector.Leadership) (*Server, error) {
	if l == nil {
		return nil, fmt.Errorf("eldest: new kv server: %w: the leadership is nil", eldest.ErrInvalid)
	}
	s := &Server{l: l, space: SpaceOf(l.Election())}
	// If there were two servers, each would count its own records.
	first := s.space.entry(l.Token(), 0)
	record, err := s.record(&kvpb.Record{Method: kvpb.Record_METHOD_OPEN})
	if err != nil {
		return nil, fmt.Errorf("eldest: new kv server: %w", err)
	}
	resp, err := l.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(first), "=", 0)).
		Then(clientv3.OpPut(first, record)).
		Commit()
	switch {
	case err != nil:
		return nil, fmt.Errorf("eldest: new kv server: %w", err)
	case !resp.Succeeded:
		return nil, fmt.Errorf("eldest: new kv server: %w: the tenure with token %d already has a server", eldest.ErrInvalid, l.Token())
	}
	return s, nil
}

// record encodes a record of this tenure.
func (s *Server) record(r *kvpb.Record) (string, error) {
	r.Token, r.LeaderKey = int64(s.l.Token()), s.l.Key()
	data, err := proto.Marshal(r)
	return string(data), err
}

// The limits, in bytes. A transaction has a value twice, for the data and for the record, and etcd
// accepts 1.5 MiB.
const (
	maxRequestID = 256
	maxKey       = 4 << 10
	maxValue     = 512 << 10
)

// check refuses a request that cannot be recorded, or that has no key.
func check(requestID, key string, value []byte) error {
	switch {
	case requestID == "":
		return status.Error(codes.InvalidArgument, "the request has no request_id")
	case len(requestID) > maxRequestID:
		return status.Errorf(codes.InvalidArgument, "the request_id has %d bytes, more than %d", len(requestID), maxRequestID)
	case len(value) > maxValue:
		return status.Errorf(codes.InvalidArgument, "the value has %d bytes, more than %d", len(value), maxValue)
	}
	return checkKey(key)
}

func checkKey(key string) error {
	switch {
	case key == "":
		return status.Error(codes.InvalidArgument, "the request has no key")
	case len(key) > maxKey:
		return status.Errorf(codes.InvalidArgument, "the key has %d bytes, more than %d", len(key), maxKey)
	}
	return nil
}
