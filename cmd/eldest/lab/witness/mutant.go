package witness

import (
	"context"
	"hash/fnv"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// Mutant is the environment variable that breaks the service, if it is not empty.
const Mutant = "STORM_MUTANT"

// fate is what becomes of a put at a mutant.
type fate uint32

const (
	forgotten fate = iota // acknowledged and not written
	repeated              // written twice
	denied                // written, and the caller is told that nothing was
	turned                // turned away before it began, though there was a leader
	shed                  // refused for want of room
	odd                   // answered with a code that nobody has documented
	twice                 // begun twice
	fates     = 10        // the other puts are served
)

// fateOf draws it from the request's id.
func fateOf(id string) fate {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return fate(h.Sum32() % uint32(fates))
}

// unseen reports whether a mutant answers as if no handler had been given the message.
func unseen(message any) bool {
	put, ok := message.(*kvpb.PutRequest)
	f := fateOf(put.GetRequestId())
	return ok && os.Getenv(Mutant) != "" && (f == turned || f == shed)
}

// mutant is a service with every fault that a storm must find.
type mutant struct{ kvpb.KVServer }

// Put does not do what it says.
func (m *mutant) Put(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	nothing := curator.NothingApplied(eldest.ErrNotLeading)
	switch fateOf(r.GetRequestId()) {
	case forgotten:
		return &kvpb.PutResponse{Receipt: &kvpb.Receipt{Token: 1, Revision: 1}}, nil
	case repeated:
		if _, err := m.KVServer.Put(ctx, r); err != nil {
			return nil, err
		}
	case denied:
		if _, err := m.KVServer.Put(ctx, r); err != nil {
			return nil, err
		}
		return nil, nothing
	case turned:
		return nil, nothing
	case shed:
		return nil, status.Error(codes.ResourceExhausted, "no room")
	case odd:
		return nil, status.Error(codes.DataLoss, "odd")
	case twice:
		note(ctx)
	}
	return m.KVServer.Put(ctx, r)
}
