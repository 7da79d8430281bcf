package witness

import (
	"context"
	"encoding/json"
	"os"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// CallKey is the metadata in which a caller names its call.
const CallKey = "storm-call"

// Begun is the event of a line that says that a handler was given the call ID.
const Begun = "begun"

// Line is one line of the witness.
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

// registrar registers services whose handlers note each call that they are given: one that
// is one message when the message is there, a stream before anything is received.
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

// note writes the line before the handler does anything. One write of so few bytes is never
// mixed with another one of this process, and is not lost when the process is killed.
func note(ctx context.Context) {
	for _, id := range metadata.ValueFromIncomingContext(ctx, CallKey) {
		if line, err := json.Marshal(Line{Event: Begun, ID: id}); err == nil {
			_, _ = os.Stdout.Write(append(line, '\n')) // without a reader nobody judges
		}
	}
}
