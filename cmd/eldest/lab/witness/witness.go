package witness

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"os"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// CallKey is the metadata in which a caller names its call.
const CallKey = "storm-call"

// Begun is the event of a line for a handler that received the call ID.
const Begun = "begun"

// Line is one line of the witness's output.
type Line struct {
	Event string `json:"event"`
	ID    string `json:"id"`
}

// RegisterKVServer registers the service with its witness, and the streams.
func RegisterKVServer(r grpc.ServiceRegistrar, s kvpb.KVServer) {
	if os.Getenv(Mutant) != "" {
		s = &mutant{s}
	}
	r = registrar{r}
	kvpb.RegisterKVServer(r, s)
	r.RegisterService(&streams, s)
}

// registrar registers services whose handlers report each call: a unary call when its message has
// been received, a stream before anything is received.
type registrar struct{ grpc.ServiceRegistrar }

// RegisterService registers a service with such handlers.
func (r registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	noting := *desc
	noting.Methods, noting.Streams = slices.Clone(desc.Methods), slices.Clone(desc.Streams)
	for i, m := range desc.Methods {
		noting.Methods[i].Handler = func(srv any, ctx context.Context, receive func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
			return m.Handler(srv, ctx, func(message any) error {
				err := receive(message)
				if err == nil && !unseen(message) {
					note(ctx)
				}
				return err
			}, around)
		}
	}
	for i, m := range desc.Streams {
		noting.Streams[i].Handler = func(srv any, stream grpc.ServerStream) error {
			note(stream.Context())
			return m.Handler(srv, stream)
		}
	}
	r.ServiceRegistrar.RegisterService(&noting, impl)
}

// note writes the line before the handler does anything. A single write of so few bytes is never
// interleaved with another write of this process, and is not lost when the process is killed.
func note(ctx context.Context) {
	for _, id := range metadata.ValueFromIncomingContext(ctx, CallKey) {
		if line, err := json.Marshal(Line{Event: Begun, ID: id}); err == nil {
			_, _ = os.Stdout.Write(append(line, '\n')) // without a reader the line is not needed
		}
	}
}

// The methods of the streams.
const (
	// AppendStream takes kvpb.AppendRequests, and answers each one with an AppendResponse.
	AppendStream = "/eldest.storm.v1.Streams/Append"
	// DeafStream takes no message and sends none until its context ends.
	DeafStream = "/eldest.storm.v1.Streams/Deaf"
)

var streams = grpc.ServiceDesc{
	ServiceName: "eldest.storm.v1.Streams",
	HandlerType: (*kvpb.KVServer)(nil),
	Streams: []grpc.StreamDesc{
		{StreamName: "Append", Handler: appendAll, ServerStreams: true, ClientStreams: true},
		{StreamName: "Deaf", Handler: deaf, ServerStreams: true, ClientStreams: true},
	},
}

func appendAll(srv any, stream grpc.ServerStream) error {
	for {
		var r kvpb.AppendRequest
		if err := stream.RecvMsg(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		answer, err := srv.(kvpb.KVServer).Append(stream.Context(), &r)
		if err != nil {
			return err
		}
		if err := stream.SendMsg(answer); err != nil {
			return err
		}
	}
}

func deaf(_ any, stream grpc.ServerStream) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

// Mutant is the environment variable that breaks the service, if it is not empty.
const Mutant = "STORM_MUTANT"

// fate is what a mutant does with a put.
type fate uint32

const (
	forgotten fate = iota // acknowledged and not written
	repeated              // written twice (by two calls of Put)
	denied                // written, but the response says that nothing was written
	turned                // rejected before it began, although there was a leader
	shed                  // refused for want of room
	odd                   // answered with an undocumented code
	twice                 // reported as begun twice
	fates     = 10        // the hash is taken modulo fates; the other puts are served
)

// fateOf derives the fate from the request's id.
func fateOf(id string) fate {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return fate(h.Sum32() % uint32(fates))
}

// unseen reports whether a mutant answers as if no handler had received the message.
func unseen(message any) bool {
	put, ok := message.(*kvpb.PutRequest)
	f := fateOf(put.GetRequestId())
	return ok && os.Getenv(Mutant) != "" && (f == turned || f == shed)
}

// mutant is a service with every fault that a storm must find.
type mutant struct{ kvpb.KVServer }

// Put treats each request according to its fate.
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
		return nil, status.Error(codes.ResourceExhausted, "resource limit")
	case odd:
		return nil, status.Error(codes.DataLoss, "odd")
	case twice:
		note(ctx)
	}
	return m.KVServer.Put(ctx, r)
}
