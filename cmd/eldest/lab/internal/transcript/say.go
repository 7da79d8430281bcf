package transcript

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// phrases are joined with commas.
type phrases []string

// add adds a phrase, if it applies.
func (p *phrases) add(applies bool, format string, args ...any) {
	if applies {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

func (p *phrases) String() string { return strings.Join(*p, ", ") }

// entries returns the entries of a message, with etcd's names of watches: one for each event, and one
// for a message without events.
func (n *names) entries(m *wiretap.Message) []Entry {
	r, ok := m.Body.(*etcdserverpb.WatchResponse)
	if !ok {
		return []Entry{n.entry(m, "")}
	}
	watch := fmt.Sprintf("w%d", r.WatchId)
	if len(r.Events) == 0 {
		return []Entry{n.entry(m, watch)}
	}
	var entries []Entry
	for _, event := range r.Events {
		entries = append(entries, n.event(m, event, watch))
	}
	return entries
}

// entry returns the entry of a message that has no events. watch is the name of the watch that it is
// about; a watch that is being created may have none yet.
func (n *names) entry(m *wiretap.Message, watch string) Entry {
	e := Entry{Lane: m.Lane, Kind: m.Kind, Verb: path.Base(m.Method), Lost: m.Lost}
	switch m.Kind {
	case wiretap.Note:
		e.Verb = plain.Line(n.text(m.Text))
	case wiretap.End:
		e.Parts = []string{n.end(m)}
	default:
		if r, is := m.Body.(*etcdserverpb.WatchRequest); is {
			verb, rest := n.watchRequest(r, watch, m.RequireLeader)
			e.Verb, e.Parts = e.Verb+" "+verb, []string{rest}
		} else {
			e.Parts = n.parts(m, watch)
		}
		e.Parts = slices.DeleteFunc(e.Parts, func(part string) bool { return part == "" })
	}
	return e
}

// event returns the entry of one event of a message.
func (n *names) event(m *wiretap.Message, event *mvccpb.Event, watch string) Entry {
	said := phrases{watch + " DELETE " + n.key(event.Kv.GetKey()) + " at " + n.revision(event.Kv.GetModRevision())}
	if event.Type == mvccpb.Event_PUT {
		said = phrases{watch + " PUT " + n.keyValue(event.Kv)}
	}
	said.add(event.PrevKv != nil, "was %s", n.keyValue(event.PrevKv))
	return Entry{Lane: m.Lane, Kind: Event, Verb: path.Base(m.Method), Parts: []string{said.String()}, Lost: m.Lost}
}

// end returns how a call ended.
func (n *names) end(m *wiretap.Message) string {
	switch code := m.Status.Code(); code {
	case codes.OK:
		return "ended"
	case codes.Canceled:
		return "ended by the client"
	default:
		return fmt.Sprintf("ended, %s: %s", code, plain.Line(n.text(m.Status.Message())))
	}
}

// parts returns the parts of a request or an answer.
func (n *names) parts(m *wiretap.Message, watch string) []string {
	revision := n.revision(revisionOf(m))
	switch r := m.Body.(type) {
	case *etcdserverpb.RangeRequest, *etcdserverpb.PutRequest, *etcdserverpb.DeleteRangeRequest, *etcdserverpb.TxnRequest:
		return n.request(r)
	case *etcdserverpb.RangeResponse, *etcdserverpb.DeleteRangeResponse:
		parts := n.answer(r)
		parts[0] = revision + ", " + parts[0]
		return parts
	case *etcdserverpb.PutResponse:
		return append([]string{revision}, n.answer(r)...)
	case *etcdserverpb.TxnResponse:
		parts := n.answer(r)
		parts[0] += ", " + revision
		return parts
	case *etcdserverpb.CompactionRequest:
		return []string{"at " + n.revision(r.Revision)}
	case *etcdserverpb.CompactionResponse, *etcdserverpb.LeaseRevokeResponse:
		return []string{revision}
	case *etcdserverpb.WatchResponse:
		return []string{watch + " " + n.watchAnswer(r, revision)}
	}
	return n.leaseParts(m)
}

// revisionOf returns the revision of the store in an answer, or 0.
func revisionOf(m *wiretap.Message) int64 {
	answer, ok := m.Body.(interface {
		GetHeader() *etcdserverpb.ResponseHeader
	})
	if !ok {
		return 0
	}
	return answer.GetHeader().GetRevision()
}

// leaseParts returns the parts of a message about a lease, and of any other message the fields.
func (n *names) leaseParts(m *wiretap.Message) []string {
	switch r := m.Body.(type) {
	case *etcdserverpb.LeaseGrantRequest:
		said := phrases{fmt.Sprintf("ttl %ds", r.TTL)}
		said.add(r.ID != 0, "as %s", n.lease(r.ID))
		return []string{said.String()}
	case *etcdserverpb.LeaseGrantResponse:
		said := phrases{n.lease(r.ID) + " " + ttl(r.TTL)}
		said.add(r.Error != "", "%s", plain.Line(r.Error))
		return []string{said.String()}
	case *etcdserverpb.LeaseRevokeRequest:
		return []string{n.lease(r.ID)}
	case *etcdserverpb.LeaseKeepAliveRequest:
		return []string{n.lease(r.ID)}
	case *etcdserverpb.LeaseKeepAliveResponse:
		return []string{n.lease(r.ID) + " " + ttl(r.TTL)}
	case *etcdserverpb.LeaseTimeToLiveRequest:
		said := phrases{n.lease(r.ID)}
		said.add(r.Keys, "with keys")
		return []string{said.String()}
	case *etcdserverpb.LeaseTimeToLiveResponse:
		return n.timeToLive(r)
	case *etcdserverpb.LeaseLeasesResponse:
		parts := []string{fmt.Sprintf("%d leases", len(r.Leases))}
		for _, l := range r.Leases {
			parts = append(parts, n.lease(l.ID))
		}
		return parts
	}
	return []string{n.fields(m)}
}

// ttl returns a TTL. That of a lease that does not exist is 0 or less.
func ttl(seconds int64) string {
	if seconds <= 0 {
		return fmt.Sprintf("ttl %d: lease not found", seconds)
	}
	return fmt.Sprintf("ttl %ds", seconds)
}

func (n *names) timeToLive(r *etcdserverpb.LeaseTimeToLiveResponse) []string {
	if r.TTL < 0 {
		return []string{n.lease(r.ID) + " " + ttl(r.TTL)}
	}
	said := phrases{fmt.Sprintf("%s granted %ds", n.lease(r.ID), r.GrantedTTL)}
	said.add(!n.normal(), "%ds remaining", r.TTL)
	parts := []string{said.String()}
	for _, key := range r.Keys {
		parts = append(parts, n.key(key))
	}
	return parts
}

// watchRequest returns what a request in a watch's call does, and the rest of its text.
func (n *names) watchRequest(r *etcdserverpb.WatchRequest, watch string, requireLeader bool) (verb, rest string) {
	switch r := r.RequestUnion.(type) {
	case *etcdserverpb.WatchRequest_CreateRequest:
		return "create", n.watchCreate(r.CreateRequest, watch, requireLeader)
	case *etcdserverpb.WatchRequest_CancelRequest:
		return "cancel", fmt.Sprintf("w%d", r.CancelRequest.GetWatchId())
	}
	return "progress", ""
}

func (n *names) watchCreate(c *etcdserverpb.WatchCreateRequest, watch string, requireLeader bool) string {
	said := phrases{strings.TrimPrefix(watch+" "+n.keys(c.Key, c.RangeEnd), " ")}
	said.add(c.StartRevision == 0, "from now on")
	said.add(c.StartRevision != 0, "from %s", n.revision(c.StartRevision))
	said.add(slices.Contains(c.Filters, etcdserverpb.WatchCreateRequest_NOPUT), "no puts")
	said.add(slices.Contains(c.Filters, etcdserverpb.WatchCreateRequest_NODELETE), "no deletions")
	said.add(c.PrevKv, "with previous value")
	said.add(c.ProgressNotify, "with progress")
	said.add(c.Fragment, "in fragments")
	said.add(requireLeader, "require leader")
	return said.String()
}

// watchAnswer returns the text of an answer that has no events.
func (n *names) watchAnswer(r *etcdserverpb.WatchResponse, revision string) string {
	switch {
	case r.Canceled:
		var why phrases
		why.add(r.CancelReason != "", "%s", plain.Line(r.CancelReason))
		why.add(r.CompactRevision != 0, "compacted at %s", n.revision(r.CompactRevision))
		if len(why) == 0 {
			return "canceled"
		}
		return "canceled: " + why.String()
	case r.Created:
		return "created, " + revision
	}
	return "progress, " + revision
}

// fields returns the fields of any message, in the order of its definition. The normal form omits
// numbers: they are sizes, terms and the IDs of members.
func (n *names) fields(m *wiretap.Message) string {
	if m.Body == nil {
		if n.normal() {
			return ""
		}
		return fmt.Sprintf("%d bytes", m.Size)
	}
	var said phrases
	body := m.Body.ProtoReflect()
	all := body.Descriptor().Fields()
	for i := range all.Len() {
		f := all.Get(i)
		if !body.Has(f) || f.Name() == "header" {
			continue
		}
		text, v := string(f.Name()), body.Get(f)
		switch {
		case f.IsList():
			text += fmt.Sprintf(" %d", v.List().Len())
		case f.IsMap(), f.Kind() == protoreflect.MessageKind, f.Kind() == protoreflect.BoolKind:
		case f.Kind() == protoreflect.StringKind:
			text += " " + n.value([]byte(v.String()))
		case f.Kind() == protoreflect.BytesKind:
			text += " " + n.value(v.Bytes())
		case f.Kind() == protoreflect.EnumKind:
			if value := f.Enum().Values().ByNumber(v.Enum()); value != nil {
				text += " " + string(value.Name())
			}
		case n.normal():
			continue
		default:
			text += " " + v.String()
		}
		said = append(said, text)
	}
	return said.String()
}
