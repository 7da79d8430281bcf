package curator

import (
	"slices"

	"google.golang.org/grpc"
)

// Only returns a registrar that registers with r these methods of a service and no others:
// in Config.Reads, those that a copy can answer. A method that the service does not have is
// registered without a handler, which a curator's registrars refuse.
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
		s.all.RegisterService(nil, impl) // whose business that is
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
