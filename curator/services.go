package curator

import (
	"fmt"
	"reflect"
	"sync"

	"google.golang.org/grpc"

	"github.com/eldest-io/eldest"
)

// method is one method of a registered service: unary or a stream, not both.
type method struct {
	name   string // "/package.Service/Method"
	impl   any
	unary  grpc.MethodHandler
	stream *grpc.StreamDesc
}

// services is the grpc.ServiceRegistrar that a tenure's services are registered with, those of
// Config.Reads, and those of Config.Local (see local).
// What is registered is looked up by the full name of the method, and nothing of it is
// known to the gRPC server: that one must know all its services before it serves.
//
// A registrar has no way to return an error, and gRPC's own ends the process. This one
// keeps the first error until it is asked.
type services struct {
	// local are the names of the services that the node answers itself, in every state.
	local map[string]bool
	// late is told of a registration after close. It must not block.
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
	if err := checkService(desc, impl); err != nil {
		return err
	}
	switch {
	case s.closed:
		return fmt.Errorf("%w: service %q was registered after Config.Services had returned, or Config.Reads or Local", eldest.ErrInvalid, desc.ServiceName)
	case s.local[desc.ServiceName]:
		return fmt.Errorf("%w: service %q is one that every node answers itself", eldest.ErrInvalid, desc.ServiceName)
	case s.names[desc.ServiceName]:
		return fmt.Errorf("%w: service %q is registered twice, or is one of the curator's own", eldest.ErrInvalid, desc.ServiceName)
	}
	s.names[desc.ServiceName] = true
	for _, m := range desc.Methods {
		name := "/" + desc.ServiceName + "/" + m.MethodName
		s.methods[name] = &method{name: name, impl: impl, unary: m.Handler}
	}
	for _, m := range desc.Streams {
		name := "/" + desc.ServiceName + "/" + m.StreamName
		s.methods[name] = &method{name: name, impl: impl, stream: &m}
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

// checkService refuses what cannot be served, whoever is to serve it.
func checkService(desc *grpc.ServiceDesc, impl any) error {
	if desc == nil || desc.ServiceName == "" {
		return fmt.Errorf("%w: a service without a name was registered", eldest.ErrInvalid)
	}
	if impl != nil && desc.HandlerType != nil {
		want := reflect.TypeOf(desc.HandlerType).Elem()
		if have := reflect.TypeOf(impl); !have.Implements(want) {
			return fmt.Errorf("%w: service %q is implemented by %v, which is not a %v", eldest.ErrInvalid, desc.ServiceName, have, want)
		}
	}
	seen := make(map[string]bool)
	check := func(name string, handled bool) error {
		switch {
		case !handled:
			return fmt.Errorf("%w: method %q of service %q has no handler", eldest.ErrInvalid, name, desc.ServiceName)
		case seen[name]:
			return fmt.Errorf("%w: method %q of service %q is there twice", eldest.ErrInvalid, name, desc.ServiceName)
		}
		seen[name] = true
		return nil
	}
	for _, m := range desc.Methods {
		if err := check(m.MethodName, m.Handler != nil); err != nil {
			return err
		}
	}
	for _, m := range desc.Streams {
		if err := check(m.StreamName, m.Handler != nil); err != nil {
			return err
		}
	}
	return nil
}
