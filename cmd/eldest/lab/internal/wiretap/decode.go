package wiretap

import (
	"strings"

	_ "go.etcd.io/etcd/api/v3/etcdserverpb" // registers etcd's API
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// method is what is known of a call by its name.
type method struct {
	request, answer protoreflect.MessageType // nil: not known
	stream          bool
}

// methodOf looks a method up in etcd's API, by its full name. Of what is not there is
// assumed that it is a stream.
func methodOf(full string) method {
	service, name, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return method{stream: true}
	}
	description, ok := found.(protoreflect.ServiceDescriptor)
	if !ok {
		return method{stream: true}
	}
	m := description.Methods().ByName(protoreflect.Name(name))
	if m == nil {
		return method{stream: true}
	}
	return method{
		request: typeOf(m.Input()), answer: typeOf(m.Output()),
		stream: m.IsStreamingClient() || m.IsStreamingServer(),
	}
}

func typeOf(d protoreflect.MessageDescriptor) protoreflect.MessageType {
	known, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return nil
	}
	return known
}

// decode makes a message of a frame, for the record. What cannot be decoded is nil: etcd
// and its client will find out for themselves.
func decode(t protoreflect.MessageType, data mem.BufferSlice) proto.Message {
	if t == nil {
		return nil
	}
	m := t.New()
	if err := proto.Unmarshal(data.Materialize(), m.Interface()); err != nil {
		return nil
	}
	redact(m)
	return m.Interface()
}

// Hidden is what stands in place of a secret.
const Hidden = "(hidden)"

// secrets are the fields that hold passwords, or what is as good as one.
var secrets = []protoreflect.Name{"password", "hashedPassword", "token"}

// redact takes secrets out of a message, and the pieces of a snapshot, which are the
// whole store.
func redact(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for _, name := range secrets {
		if f := fields.ByName(name); f != nil && f.Kind() == protoreflect.StringKind && m.Has(f) {
			m.Set(f, protoreflect.ValueOfString(Hidden))
		}
	}
	if f := fields.ByName("blob"); f != nil {
		m.Clear(f)
	}
}
