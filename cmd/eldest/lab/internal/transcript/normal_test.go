package transcript_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// step is a message of an invented trace, which comes after those that it names.
type step struct {
	name  string
	after string // names, with spaces between them
	m     wiretap.Message
}

func message(lane string, call int, method string, kind wiretap.Kind, body proto.Message) wiretap.Message {
	return wiretap.Message{Lane: lane, Call: call, Method: "/etcdserverpb." + method, Kind: kind, Body: body, Stream: strings.HasPrefix(method, "Watch") || method == "Lease/LeaseKeepAlive"}
}

func ask(lane string, call int, method string, body proto.Message) wiretap.Message {
	return message(lane, call, method, wiretap.Request, body)
}

func answer(lane string, call int, method string, body proto.Message) wiretap.Message {
	return message(lane, call, method, wiretap.Answer, body)
}

func watchKey(key string) *etcdserverpb.WatchRequest {
	return &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte(key)}}}
}

func deleted(key string, revision int64, watch int64) *etcdserverpb.WatchResponse {
	return &etcdserverpb.WatchResponse{WatchId: watch, Header: at(revision), Events: []*mvccpb.Event{
		{Type: mvccpb.Event_DELETE, Kv: &keyValue{Key: []byte(key), ModRevision: revision}},
	}}
}

// handover has the messages of two candidates: anna puts her key and watches it, and bert watches
// it; she deletes it, and both receive the event; bert proves that he may lead, and she revokes her
// lease. base is the revision of the store, and lease her lease.
func handover(base, lease int64) []step {
	hex := "0123456789abcdef"
	if lease != 0x123456789abcdef {
		hex = "00fedcba98765432"
	}
	key := "e/" + strings.TrimLeft(hex, "0")
	remove := &txnRequest{Compare: []*etcdserverpb.Compare{compareCreate(key, base+1)}, Success: []*etcdserverpb.RequestOp{
		{Request: &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: &etcdserverpb.DeleteRangeRequest{Key: []byte(key)}}},
	}}
	removed := &etcdserverpb.TxnResponse{Header: at(base + 2), Succeeded: true, Responses: []*etcdserverpb.ResponseOp{
		{Response: &etcdserverpb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &etcdserverpb.DeleteRangeResponse{Deleted: 1}}},
	}}
	return []step{
		{"grant", "", ask("anna", 1, "Lease/LeaseGrant", &etcdserverpb.LeaseGrantRequest{TTL: 60})},
		{"granted", "grant", answer("anna", 1, "Lease/LeaseGrant", &etcdserverpb.LeaseGrantResponse{Header: at(base), ID: lease, TTL: 60})},
		{"put", "granted", ask("anna", 2, "KV/Put", &etcdserverpb.PutRequest{Key: []byte(key), Lease: lease})},
		{"stands", "put", answer("anna", 2, "KV/Put", &etcdserverpb.PutResponse{Header: at(base + 1)})},
		{"own", "stands", ask("anna", 3, "Watch/Watch", watchKey(key))},
		{"owned", "own", answer("anna", 3, "Watch/Watch", &etcdserverpb.WatchResponse{Header: at(base + 1), Created: true})},
		{"wait", "owned", ask("bert", 4, "Watch/Watch", watchKey(key))},
		{"waits", "wait", answer("bert", 4, "Watch/Watch", &etcdserverpb.WatchResponse{Header: at(base + 1), Created: true})},
		// Renewals come at any time.
		{"renew", "granted", ask("anna", 5, "Lease/LeaseKeepAlive", &etcdserverpb.LeaseKeepAliveRequest{ID: lease})},
		{"renewed", "renew", answer("anna", 5, "Lease/LeaseKeepAlive", &etcdserverpb.LeaseKeepAliveResponse{Header: at(base), ID: lease, TTL: 60})},
		{"majority", "renewed", ask("anna", 6, "Cluster/MemberList", &etcdserverpb.MemberListRequest{Linearizable: true})},
		{"behind", "majority", answer("anna", 6, "Cluster/MemberList", &etcdserverpb.MemberListResponse{Members: []*etcdserverpb.Member{{}}})},
		{"delete", "waits", ask("anna", 7, "KV/Txn", remove)},
		{"deleted", "delete", answer("anna", 7, "KV/Txn", removed)},
		// Both receive the event in any order, and possibly before the answer arrives.
		{"annaTold", "delete", answer("anna", 3, "Watch/Watch", deleted(key, base+2, 0))},
		{"bertTold", "delete", answer("bert", 4, "Watch/Watch", deleted(key, base+2, 0))},
		{"prove", "bertTold", ask("bert", 8, "KV/Range", &rangeRequest{Key: []byte("e/x"), Revision: base + 2})},
		{"proven", "prove", answer("bert", 8, "KV/Range", &etcdserverpb.RangeResponse{Header: at(base + 2)})},
		{"cancel", "bertTold", ask("bert", 4, "Watch/Watch", &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CancelRequest{CancelRequest: &etcdserverpb.WatchCancelRequest{}}})},
		{"canceled", "cancel", answer("bert", 4, "Watch/Watch", &etcdserverpb.WatchResponse{Header: at(base + 2), Canceled: true})},
		{"revoke", "deleted proven", ask("anna", 9, "Lease/LeaseRevoke", &etcdserverpb.LeaseRevokeRequest{ID: lease})},
		{"revoked", "revoke", answer("anna", 9, "Lease/LeaseRevoke", &etcdserverpb.LeaseRevokeResponse{Header: at(base + 2)})},
		{"end", "revoked", wiretap.Message{Lane: "anna", Call: 3, Method: "/etcdserverpb.Watch/Watch", Kind: wiretap.End, Stream: true, Status: status.New(codes.Canceled, "")}},
	}
}

// shuffled returns the messages in one of the possible orders.
func shuffled(steps []step, rng *rand.Rand) []wiretap.Message {
	done := map[string]bool{}
	var messages []wiretap.Message
	for len(messages) < len(steps) {
		s := steps[rng.IntN(len(steps))]
		ready := !done[s.name]
		for _, before := range strings.Fields(s.after) {
			ready = ready && done[before]
		}
		if ready {
			done[s.name] = true
			messages = append(messages, s.m)
		}
	}
	return messages
}

const normalised = `
anna → LeaseGrant ttl 60s
anna ← LeaseGrant L1 ttl 60s
anna → LeaseKeepAlive L1
anna ← LeaseKeepAlive L1 ttl 60s
anna → MemberList linearizable
anna ← MemberList members 1
anna → Put "e/L1" = "", lease L1
anna ← Put r2
anna → Watch create w1 "e/L1", from now on
anna ← Watch w1 created, r2
bert → Watch create w1 "e/L1", from now on
bert ← Watch w1 created, r2
anna → Txn If create("e/L1") = r2 Then Delete "e/L1"
anna ← Txn then, r3; Delete 1 deleted
bert ← Watch w1 DELETE "e/L1" at r3
bert → Range "e/x", at r3
bert ← Range r3, no key
anna → LeaseRevoke L1
anna ← LeaseRevoke r3
`

func printed(t *testing.T, messages []wiretap.Message) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n")
	require.NoError(t, transcript.Print(&b, transcript.Normalise(messages)))
	return b.String()
}

// The normal form is the same for any order of the messages of one scenario, any lease, and any
// revision of the store.
func TestNormalFormIsTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		base, lease := int64(1), int64(0x123456789abcdef)
		if i%2 == 1 {
			base, lease = 70000, 0xfedcba98765432
		}
		require.Equal(t, normalised, printed(t, shuffled(handover(base, lease), rng)))
	}
}

// Entries name the keys that are created and deleted, as the diagram needs them.
func TestKeysComeAndGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var gained, gone []string
	for _, e := range transcript.Normalise(shuffled(handover(1, 0x123456789abcdef), rng)) {
		for _, k := range e.Gained {
			gained = append(gained, e.Lane+" "+k+" "+e.Text())
		}
		gone = append(gone, e.Gone...)
	}
	require.Equal(t, []string{"anna e/L1 Put r2"}, gained)
	require.Equal(t, []string{"e/L1"}, gone)
}

// A call or watch that etcd ends is kept, and a watch from the past receives its events when it begins.
func TestNormalFormKeeps(t *testing.T) {
	require.Equal(t, `
anna → DeleteRange "k"
anna ← DeleteRange r2, 1 deleted
bert → Watch create w1 "k", from now on
bert ← Watch w1 created, r2
bert ← Watch w1 DELETE "k" at r2
bert → Watch create w2 "k", from now on
bert ← Watch w2 created, r2
bert ← Watch w2 canceled: compacted at r1
carl ← Watch w DELETE "l" at r3
anna → Put "k" = "" (lost)
bert ← Watch ended, Unavailable: no leader
`, printed(t, []wiretap.Message{
		ask("anna", 1, "KV/DeleteRange", &etcdserverpb.DeleteRangeRequest{Key: []byte("k")}),
		answer("anna", 1, "KV/DeleteRange", &etcdserverpb.DeleteRangeResponse{Header: at(6), Deleted: 1}),
		ask("bert", 2, "Watch/Watch", watchKey("k")),
		answer("bert", 2, "Watch/Watch", &etcdserverpb.WatchResponse{Header: at(6), Created: true, WatchId: 1}),
		answer("bert", 2, "Watch/Watch", deleted("k", 6, 1)),
		ask("bert", 2, "Watch/Watch", watchKey("k")),
		answer("bert", 2, "Watch/Watch", &etcdserverpb.WatchResponse{Header: at(6), Created: true, WatchId: 2}),
		answer("bert", 2, "Watch/Watch", &etcdserverpb.WatchResponse{Header: at(6), Canceled: true, WatchId: 2, CompactRevision: 5}),
		answer("carl", 3, "Watch/Watch", deleted("l", 7, 9)),
		func() wiretap.Message {
			m := ask("anna", 4, "KV/Put", &etcdserverpb.PutRequest{Key: []byte("k")})
			m.Lost = true
			return m
		}(),
		{Lane: "bert", Call: 2, Method: "/etcdserverpb.Watch/Watch", Kind: wiretap.End, Stream: true, Status: status.New(codes.Unavailable, "no leader")},
	}))
}

// A read at a revision that the member has not reached is omitted if it was repeated and answered.
func TestNormalFormOmitsRepeatedReads(t *testing.T) {
	refused := func(call int) wiretap.Message {
		return wiretap.Message{Lane: "bert", Call: call, Method: "/etcdserverpb.KV/Range", Kind: wiretap.End, Status: status.New(codes.OutOfRange, "future")}
	}
	read := &etcdserverpb.RangeRequest{Key: []byte("k"), Revision: 6}
	require.Equal(t, `
bert → Range "k", at r1
bert ← Range r1, no key
bert → Range "k", at r2
bert ← Range ended, OutOfRange: future
`, printed(t, []wiretap.Message{
		ask("bert", 1, "KV/Range", read), refused(1),
		ask("bert", 2, "KV/Range", read),
		answer("bert", 2, "KV/Range", &etcdserverpb.RangeResponse{Header: at(6)}),
		ask("bert", 3, "KV/Range", &etcdserverpb.RangeRequest{Key: []byte("k"), Revision: 7}), refused(3),
	}))
}

// A read that saw a write is after it, in whatever lanes they are; a watch from the past receives
// events of which the cause was not recorded; and the renewals of earlier leases come first.
func TestNormalFormOrder(t *testing.T) {
	require.Equal(t, `
bert → LeaseKeepAlive L1
bert ← LeaseKeepAlive L1 ttl 60s
anna → Range "j"
anna ← Range r1, no key
bert → Put "k" = ""
bert ← Put r2
anna → Range "k"
anna ← Range r2, 1 key; "k" create r2
bert → Watch create w1 "j", from r0
bert ← Watch w1 created, r2
bert ← Watch w1 DELETE "j" at r1
`, printed(t, []wiretap.Message{
		ask("anna", 1, "KV/Range", &rangeRequest{Key: []byte("j")}),
		answer("anna", 1, "KV/Range", &etcdserverpb.RangeResponse{Header: at(6)}),
		ask("anna", 2, "KV/Range", &rangeRequest{Key: []byte("k")}),
		ask("bert", 3, "KV/Put", &etcdserverpb.PutRequest{Key: []byte("k")}),
		answer("anna", 2, "KV/Range", &etcdserverpb.RangeResponse{Header: at(7), Kvs: []*keyValue{{Key: []byte("k"), CreateRevision: 7}}}),
		answer("bert", 3, "KV/Put", &etcdserverpb.PutResponse{Header: at(7)}),
		ask("bert", 4, "Watch/Watch", &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
			CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte("j"), StartRevision: 5},
		}}),
		answer("bert", 4, "Watch/Watch", &etcdserverpb.WatchResponse{Header: at(7), Created: true}),
		answer("bert", 4, "Watch/Watch", deleted("j", 6, 0)),
		ask("bert", 5, "Lease/LeaseKeepAlive", &etcdserverpb.LeaseKeepAliveRequest{ID: 255}),
		answer("bert", 5, "Lease/LeaseKeepAlive", &etcdserverpb.LeaseKeepAliveResponse{Header: at(7), ID: 255, TTL: 60}),
	}))
}

// If no answer says what the store's revision was, revisions are unchanged. A request that was lost
// again and again occurs once, and that the client does not wait any longer is omitted, also if it had
// given up before its request came.
func TestNormalFormWithoutAnswers(t *testing.T) {
	lost := func(call int) wiretap.Message {
		m := ask("anna", call, "KV/Range", &rangeRequest{Key: []byte("k"), Revision: 7})
		m.Lost = true
		return m
	}
	require.Equal(t, `
anna → Range "k", at r7 (lost)
`, printed(t, []wiretap.Message{
		lost(1), lost(2),
		{Lane: "anna", Call: 2, Method: "/etcdserverpb.KV/Range", Kind: wiretap.End, Status: status.New(codes.DeadlineExceeded, "")},
		{Lane: "anna", Call: 3, Method: "/etcdserverpb.KV/Range", Kind: wiretap.End, Status: status.New(codes.Canceled, "")},
	}))
}

func TestNothing(t *testing.T) { require.Empty(t, transcript.Normalise(nil)) }
