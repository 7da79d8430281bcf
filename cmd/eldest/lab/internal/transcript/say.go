package transcript

import (
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// verb returns the name of a method without its service.
func verb(method string) string {
	_, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return name
}

// say formats a message: one entry, or one for each event. created is the name of the watch that a
// request creates, if it is known.
func say(m wiretap.Message, created string, n names) []Entry {
	e := Entry{Lane: m.Lane, Kind: m.Kind, Verb: verb(m.Method), Lost: m.Lost}
	if n.exact() {
		e.At, e.Connection, e.Call = m.At, m.Connection, m.Call
	}
	switch m.Kind {
	case wiretap.Note:
		e.Verb = plain.Line(n.text(m.Text))
		return []Entry{e}
	case wiretap.End:
		e.Parts = []string{sayEnd(m, n)}
		return []Entry{e}
	case wiretap.Request:
		e.Parts = sayRequest(m, created, n)
		if r, ok := m.Body.(*etcdserverpb.WatchRequest); ok {
			e.Verb += " " + watchVerb(r)
		}
		return []Entry{e}
	}
	if r, ok := m.Body.(*etcdserverpb.WatchResponse); ok && len(r.Events) > 0 {
		var all []Entry
		for _, event := range r.Events {
			told := e
			told.Kind, told.Parts = Event, []string{n.watch(m.Call, r.WatchId) + " " + sayEvent(event, n)}
			all = append(all, told)
		}
		return all
	}
	e.Parts = sayAnswer(m, n)
	return []Entry{e}
}

// watchVerb returns the kind of a request on a watch stream.
func watchVerb(r *etcdserverpb.WatchRequest) string {
	switch r.RequestUnion.(type) {
	case *etcdserverpb.WatchRequest_CancelRequest:
		return "cancel"
	case *etcdserverpb.WatchRequest_ProgressRequest:
		return "progress"
	default:
		return "create"
	}
}

func sayRequest(m wiretap.Message, created string, n names) []string {
	switch r := m.Body.(type) {
	case *etcdserverpb.RangeRequest:
		return []string{sayRange(r, n)}
	case *etcdserverpb.PutRequest:
		return []string{sayPut(r, n)}
	case *etcdserverpb.DeleteRangeRequest:
		return []string{sayDelete(r, n)}
	case *etcdserverpb.TxnRequest:
		return sayTxn(r, n)
	case *etcdserverpb.CompactionRequest:
		return []string{"at " + n.rev(r.Revision)}
	case *etcdserverpb.LeaseGrantRequest:
		return []string{sayGrant(r, n)}
	case *etcdserverpb.LeaseRevokeRequest:
		return []string{n.lease(r.ID)}
	case *etcdserverpb.LeaseKeepAliveRequest:
		return []string{n.lease(r.ID)}
	case *etcdserverpb.LeaseTimeToLiveRequest:
		return []string{list(n.lease(r.ID), when(r.Keys, "with keys"))}
	case *etcdserverpb.WatchRequest:
		switch u := r.RequestUnion.(type) {
		case *etcdserverpb.WatchRequest_CreateRequest:
			return sayCreate(u.CreateRequest, created, m.RequireLeader, n)
		case *etcdserverpb.WatchRequest_CancelRequest:
			return []string{n.watch(m.Call, u.CancelRequest.WatchId)}
		}
		return nil
	}
	return fields(m, n)
}

func sayAnswer(m wiretap.Message, n names) []string {
	switch r := m.Body.(type) {
	case *etcdserverpb.RangeResponse:
		parts := sayFound(r, n)
		parts[0] = n.rev(r.Header.GetRevision()) + ", " + parts[0]
		return parts
	case *etcdserverpb.PutResponse:
		return append([]string{n.rev(r.Header.GetRevision())}, sayPutDone(r, n)...)
	case *etcdserverpb.DeleteRangeResponse:
		parts := sayDeleted(r, n)
		parts[0] = n.rev(r.Header.GetRevision()) + ", " + parts[0]
		return parts
	case *etcdserverpb.TxnResponse:
		return sayOutcome(r, n)
	case *etcdserverpb.CompactionResponse:
		return []string{n.rev(r.Header.GetRevision())}
	case *etcdserverpb.LeaseGrantResponse:
		return []string{list(n.lease(r.ID)+" "+ttl(r.TTL), r.Error)}
	case *etcdserverpb.LeaseRevokeResponse:
		return []string{n.rev(r.Header.GetRevision())}
	case *etcdserverpb.LeaseKeepAliveResponse:
		return []string{n.lease(r.ID) + " " + ttl(r.TTL)}
	case *etcdserverpb.LeaseTimeToLiveResponse:
		return sayTimeToLive(r, n)
	case *etcdserverpb.LeaseLeasesResponse:
		return sayLeases(r, n)
	case *etcdserverpb.WatchResponse:
		return sayWatch(r, n.watch(m.Call, r.WatchId), n)
	}
	return fields(m, n)
}

// sayEnd formats how a call ended.
func sayEnd(m wiretap.Message, n names) string {
	switch s := m.Status; {
	case s.Code() == codes.OK:
		return "ended"
	case s.Code() == codes.Canceled:
		return "ended by the client"
	default:
		return "ended, " + s.Code().String() + ": " + plain.Line(n.text(s.Message()))
	}
}

// fields lists the fields of a message of another kind, in the order of its definition.
func fields(m wiretap.Message, n names) []string {
	if m.Body == nil {
		return []string{decimal(int64(m.Size)) + " bytes"}
	}
	var parts []string
	reflected := m.Body.ProtoReflect()
	for i := range reflected.Descriptor().Fields().Len() {
		f := reflected.Descriptor().Fields().Get(i)
		if text := field(f, reflected, n); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{list(parts...)}
}

func field(f protoreflect.FieldDescriptor, in protoreflect.Message, n names) string {
	name, v := string(f.Name()), in.Get(f)
	switch {
	case !in.Has(f) || name == "header":
		return ""
	case f.IsList():
		return fmt.Sprintf("%s %d", name, v.List().Len())
	case f.Kind() == protoreflect.StringKind:
		return name + " " + quoted(n.text(v.String()), valueShown)
	case f.Kind() == protoreflect.BytesKind:
		return name + " " + value(v.Bytes(), n)
	case f.Kind() == protoreflect.BoolKind:
		return name
	case f.Kind() == protoreflect.EnumKind:
		if d := f.Enum().Values().ByNumber(v.Enum()); d != nil {
			return name + " " + string(d.Name())
		}
		return name
	case f.Kind() == protoreflect.MessageKind || f.IsMap():
		return name
	case n.exact(): // sizes, IDs, terms
		return name + " " + v.String()
	}
	return ""
}

// revisionOf returns the revision of the store in an answer's header, or 0 if it has none.
func revisionOf(m proto.Message) int64 {
	if h, ok := m.(interface {
		GetHeader() *etcdserverpb.ResponseHeader
	}); ok {
		return h.GetHeader().GetRevision()
	}
	return 0
}
