package curator

import (
	"context"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rawframe"
)

// local is the grpc.ServiceRegistrar of the services that every node answers itself.
// They are registered with the gRPC server as they are, interceptors and all, but for
// one thing: the codec that is forced on the server moves frames, so each handler gets
// its messages through the codec of its call.
//
// gRPC ends the process where a service is registered twice or too late; this one refuses
// before.
type local struct {
	server *grpc.Server
	names  map[string]bool
	err    error // the first one

	// closed is called for what comes too late. It is set once nothing else may come.
	closed atomic.Pointer[func(error)]
}

// RegisterService registers a service; see grpc.ServiceRegistrar.
func (l *local) RegisterService(desc *grpc.ServiceDesc, impl any) {
	if late := l.closed.Load(); late != nil {
		(*late)(fmt.Errorf("%w: a local service was registered after Config.Local had returned", eldest.ErrInvalid))
		return
	}
	err := checkService(desc, impl)
	if err == nil && l.names[desc.ServiceName] {
		err = fmt.Errorf("%w: service %q is registered twice, or is one of the curator's own", eldest.ErrInvalid, desc.ServiceName)
	}
	if err != nil {
		if l.err == nil {
			l.err = err
		}
		return
	}
	l.names[desc.ServiceName] = true
	l.server.RegisterService(overFrames(desc), impl)
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
