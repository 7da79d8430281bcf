package curator

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/rawframe"
)

// method is one method of a registered service: unary or a stream, not both.
type method struct {
	name   string // "/package.Service/Method"
	impl   any
	unary  grpc.MethodHandler
	stream *grpc.StreamDesc
}

// services is the grpc.ServiceRegistrar for the services of a tenure, of Config.Reads, and of
// Config.Local (see local). The curator looks up methods here by their full names, and the gRPC
// server does not have them, because a gRPC server must have all its services before it serves.
//
// A registrar cannot return an error, and gRPC's own ends the process. This one keeps the first
// error until close.
type services struct {
	// local are the names of the services that the node answers itself, in every state.
	local map[string]bool
	// late receives the error of a registration after close. It must not block.
	late func(error)
	// added, if set, is called for each service that is registered.
	added func(desc *grpc.ServiceDesc, impl any)

	mu      sync.Mutex
	closed  bool
	err     error
	names   map[string]bool
	methods map[string]*method
}

func newServices(local map[string]bool, late func(error)) *services {
	return &services{local: local, late: late, names: make(map[string]bool), methods: make(map[string]*method)}
}

// RegisterService registers a service; see grpc.ServiceRegistrar.
func (s *services) RegisterService(desc *grpc.ServiceDesc, impl any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.add(desc, impl)
	switch {
	case err == nil:
	case s.closed:
		s.late(err)
	case s.err == nil:
		s.err = err
	}
}

// add registers all of the service or nothing.
func (s *services) add(desc *grpc.ServiceDesc, impl any) error {
	if desc == nil || desc.ServiceName == "" {
		return invalid("a service without a name was registered")
	}
	methods, err := methodsOf(desc, impl)
	switch {
	case err != nil:
		return fmt.Errorf("%w: service %q %w", eldest.ErrInvalid, desc.ServiceName, err)
	case s.closed:
		return invalid("service %q was registered after Config.Services, Config.Reads or Config.Local had returned", desc.ServiceName)
	case s.local[desc.ServiceName]:
		return invalid("service %q was registered by Config.Local before", desc.ServiceName)
	case s.names[desc.ServiceName]:
		return invalid("service %q is registered twice, or is one of the curator's own", desc.ServiceName)
	}
	s.names[desc.ServiceName] = true
	for _, m := range methods {
		s.methods[m.name] = m
	}
	if s.added != nil {
		s.added(desc, impl)
	}
	return nil
}

// close ends the registration and returns the methods, or why they cannot be served.
func (s *services) close() (map[string]*method, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.methods, s.err
}

// methodsOf returns the methods of a service, or the reason why no server can serve it.
func methodsOf(desc *grpc.ServiceDesc, impl any) ([]*method, error) {
	if impl != nil && desc.HandlerType != nil {
		want := reflect.TypeOf(desc.HandlerType).Elem()
		if have := reflect.TypeOf(impl); !have.Implements(want) {
			return nil, fmt.Errorf("is implemented by %v, which is not a %v", have, want)
		}
	}
	var all []*method
	for _, m := range desc.Methods {
		all = append(all, &method{name: m.MethodName, impl: impl, unary: m.Handler})
	}
	for _, m := range desc.Streams {
		all = append(all, &method{name: m.StreamName, impl: impl, stream: &m})
	}
	seen := make(map[string]bool)
	for _, m := range all {
		switch {
		case m.unary == nil && (m.stream == nil || m.stream.Handler == nil):
			return nil, fmt.Errorf("has no handler for method %q", m.name)
		case seen[m.name]:
			return nil, fmt.Errorf("has method %q twice", m.name)
		}
		seen[m.name] = true
		m.name = "/" + desc.ServiceName + "/" + m.name
	}
	return all, nil
}

// Only returns a registrar that registers with r only these methods of a service: in Config.Reads,
// those that a copy can answer. A method that the service does not have is registered without a
// handler, which a curator's registrars refuse.
func Only(r grpc.ServiceRegistrar, methods ...string) grpc.ServiceRegistrar {
	return subset{r, methods}
}

// subset is a registrar of some methods.
type subset struct {
	all     grpc.ServiceRegistrar
	methods []string
}

// RegisterService registers a service; see grpc.ServiceRegistrar.
func (s subset) RegisterService(desc *grpc.ServiceDesc, impl any) {
	if desc == nil {
		s.all.RegisterService(nil, impl) // s.all handles nil
		return
	}
	some := *desc
	some.Methods, some.Streams = nil, nil
	for _, name := range s.methods {
		if at := slices.IndexFunc(desc.Streams, func(m grpc.StreamDesc) bool { return m.StreamName == name }); at >= 0 {
			some.Streams = append(some.Streams, desc.Streams[at])
			continue
		}
		m := grpc.MethodDesc{MethodName: name}
		if at := slices.IndexFunc(desc.Methods, func(m grpc.MethodDesc) bool { return m.MethodName == name }); at >= 0 {
			m = desc.Methods[at]
		}
		some.Methods = append(some.Methods, m)
	}
	s.all.RegisterService(&some, impl)
}

// local is the grpc.ServiceRegistrar of the services that every node answers itself. It registers
// them with the gRPC servers as well, so the interceptors are called. One thing differs: the
// servers' forced codec moves frames, so each handler gets its messages through the codec of its
// call.
type local struct {
	*services
	servers servers
}

func newLocal(all servers, late func(error)) *local {
	l := &local{services: newServices(nil, late), servers: all}
	l.added = func(desc *grpc.ServiceDesc, impl any) { all.RegisterService(overFrames(desc), impl) }
	return l
}

// GetServiceInfo lists the local services, for gRPC's reflection service.
func (l *local) GetServiceInfo() map[string]grpc.ServiceInfo { return l.servers[0].GetServiceInfo() }

// overFrames returns the description of the same service with handlers that receive frames.
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
