package curator

import (
	"context"

	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/internal/rawframe"
)

// local is the grpc.ServiceRegistrar of the services that every node answers itself.
// They are registered with the gRPC server as well, as they are, interceptors and all, but for
// one thing: the codec that is forced on the server moves frames, so each handler gets
// its messages through the codec of its call.
type local struct {
	*services
	server *grpc.Server
}

func newLocal(server *grpc.Server) *local {
	l := &local{services: newServices(nil, nil), server: server}
	l.added = func(desc *grpc.ServiceDesc, impl any) { server.RegisterService(overFrames(desc), impl) }
	return l
}

// GetServiceInfo lists the local services, for gRPC's reflection service.
func (l *local) GetServiceInfo() map[string]grpc.ServiceInfo { return l.server.GetServiceInfo() }

// overFrames returns the description of the same service with handlers that are given
// frames.
func overFrames(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	over := *desc
	over.Methods, over.Streams = nil, nil
	for _, m := range desc.Methods {
		handler := m.Handler
		m.Handler = func(srv any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			c := codecOf(ctx)
			reply, err := handler(srv, ctx, func(m any) error {
				var f rawframe.Frame
				defer f.Free()
				if err := receive(&f); err != nil {
					return err
				}
				return decode(c, &f, m)
			}, interceptor)
			if err != nil {
				return nil, withoutLost(err, anyLost)
			}
			return encode(c, reply)
		}
		over.Methods = append(over.Methods, m)
	}
	for _, s := range desc.Streams {
		handler := s.Handler
		many := s.ClientStreams
		s.Handler = func(srv any, stream grpc.ServerStream) error {
			err := handler(srv, &decoding{ServerStream: stream, codec: codecOf(stream.Context()), many: many})
			return withoutLost(err, anyLost)
		}
		over.Streams = append(over.Streams, s)
	}
	return &over
}
