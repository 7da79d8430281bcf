package wiretap

import (
	"strings"

	_ "go.etcd.io/etcd/api/v3/etcdserverpb" // registers etcd's API
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// method is what the name of a call determines.
type method struct {
	request, answer protoreflect.MessageType // nil: unknown
	stream          bool
}

// methodOf looks a method up in etcd's API, by its full name. A method that is not there is assumed
// to be a stream.
func methodOf(full string) method {
	name := strings.ReplaceAll(strings.TrimPrefix(full, "/"), "/", ".")
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	m, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
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

// decode decodes a frame, for the record. It returns nil for a frame that cannot be decoded: etcd
// and its client will report that themselves.
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

// Hidden replaces a secret.
const Hidden = "(hidden)"

// secrets are the fields that hold passwords, or equivalents.
var secrets = []protoreflect.Name{"password", "hashedPassword", "token"}

// redact removes secrets from a message, and the blobs of a snapshot, which are the whole store.
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
