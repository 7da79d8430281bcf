package transcript_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// Short names for etcd's types.
type (
	rangeRequest = etcdserverpb.RangeRequest
	txnRequest   = etcdserverpb.TxnRequest
	keyValue     = mvccpb.KeyValue
)

func at(revision int64) *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{Revision: revision}
}

func putOp(key, value string, lease int64) *etcdserverpb.RequestOp {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestPut{
		RequestPut: &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: lease},
	}}
}

func rangeOp(key string) *etcdserverpb.RequestOp {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestRange{RequestRange: &rangeRequest{Key: []byte(key)}}}
}

func compareCreate(key string, revision int64) *etcdserverpb.Compare {
	return &etcdserverpb.Compare{
		Key: []byte(key), Target: etcdserverpb.Compare_CREATE, Result: etcdserverpb.Compare_EQUAL,
		TargetUnion: &etcdserverpb.Compare_CreateRevision{CreateRevision: revision},
	}
}

// The text of each kind of message has its content.
func TestLive(t *testing.T) {
	prefix := []byte(clientv3.GetPrefixRangeEnd("e/"))
	for name, tc := range map[string]struct {
		method string
		kind   wiretap.Kind
		body   proto.Message
		want   string
	}{
		"range": {"KV/Range", wiretap.Request, &rangeRequest{
			Key: []byte("e/"), RangeEnd: prefix, Revision: 7, Limit: 2, SortOrder: etcdserverpb.RangeRequest_DESCEND,
			SortTarget: etcdserverpb.RangeRequest_CREATE, MaxCreateRevision: 6, KeysOnly: true, Serializable: true,
		}, `Range prefix "e/", at r7, by create descending, limit 2, create at most r6, keys only, serializable`},
		"from":     {"KV/Range", wiretap.Request, &rangeRequest{Key: []byte("a"), RangeEnd: []byte{0}}, `Range keys from "a"`},
		"between":  {"KV/Range", wiretap.Request, &rangeRequest{Key: []byte("a"), RangeEnd: []byte("x")}, `Range keys from "a" to "x"`},
		"all":      {"KV/Range", wiretap.Request, &rangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}, `Range all keys`},
		"controls": {"KV/Range", wiretap.Request, &rangeRequest{Key: []byte("\x1b[2J")}, `Range "\x1b[2J"`},
		"long": {
			"KV/Put", wiretap.Request, &etcdserverpb.PutRequest{Key: []byte("k"), Value: []byte(strings.Repeat("ä", 30)), Lease: 255},
			`Put "k" = "` + strings.Repeat("ä", 24) + `"… (60 bytes), lease ff`,
		},
		"found": {"KV/Range", wiretap.Answer, &etcdserverpb.RangeResponse{
			Header: at(9), Count: 3, Kvs: []*keyValue{{Key: []byte("k"), Value: []byte("v"), CreateRevision: 4, ModRevision: 5, Lease: 255}},
		}, `Range r9, 1 of 3 keys; "k" = "v" create r4 mod r5 lease ff`},
		"txn": {"KV/Txn", wiretap.Request, &txnRequest{
			Compare: []*etcdserverpb.Compare{compareCreate("k", 0)}, Success: []*etcdserverpb.RequestOp{putOp("k", "v", 0), rangeOp("l")},
			Failure: []*etcdserverpb.RequestOp{{Request: &etcdserverpb.RequestOp_RequestTxn{RequestTxn: &txnRequest{
				Compare: []*etcdserverpb.Compare{compareCreate("k", 3)}, Success: []*etcdserverpb.RequestOp{rangeOp("k")},
			}}}},
		}, `Txn If create("k") = 0 Then Put "k" = "v"; Range "l" Else Txn (If create("k") = r3 Then Range "k")`},
		"outcome": {"KV/Txn", wiretap.Answer, &etcdserverpb.TxnResponse{Header: at(3), Succeeded: true, Responses: []*etcdserverpb.ResponseOp{
			{Response: &etcdserverpb.ResponseOp_ResponsePut{ResponsePut: &etcdserverpb.PutResponse{}}},
			{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: &etcdserverpb.RangeResponse{}}},
		}}, `Txn then, r3; Put; Range no key`},
		"grant":   {"Lease/LeaseGrant", wiretap.Answer, &etcdserverpb.LeaseGrantResponse{ID: 255, TTL: 60}, `LeaseGrant ff ttl 60s`},
		"gone":    {"Lease/LeaseKeepAlive", wiretap.Answer, &etcdserverpb.LeaseKeepAliveResponse{ID: 255}, `LeaseKeepAlive ff ttl 0: lease not found`},
		"left":    {"Lease/LeaseTimeToLive", wiretap.Answer, &etcdserverpb.LeaseTimeToLiveResponse{ID: 255, TTL: 41, GrantedTTL: 60, Keys: [][]byte{[]byte("k")}}, `LeaseTimeToLive ff granted 60s, 41s remaining; "k"`},
		"compact": {"KV/Compact", wiretap.Request, &etcdserverpb.CompactionRequest{Revision: 4}, `Compact at r4`},
		"create": {"Watch/Watch", wiretap.Request, &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
			CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte("k"), StartRevision: 4, Filters: []etcdserverpb.WatchCreateRequest_FilterType{etcdserverpb.WatchCreateRequest_NOPUT}},
		}}, `Watch create "k", from r4, no puts`},
		"created":   {"Watch/Watch", wiretap.Answer, &etcdserverpb.WatchResponse{Header: at(4), Created: true, WatchId: 2}, `Watch w2 created, r4`},
		"compacted": {"Watch/Watch", wiretap.Answer, &etcdserverpb.WatchResponse{Header: at(4), Canceled: true, CompactRevision: 3}, `Watch w0 canceled: compacted at r3`},
		"progress":  {"Watch/Watch", wiretap.Answer, &etcdserverpb.WatchResponse{Header: at(4)}, `Watch w0 progress, r4`},
		"event": {"Watch/Watch", wiretap.Answer, &etcdserverpb.WatchResponse{Events: []*mvccpb.Event{
			{Type: mvccpb.Event_DELETE, Kv: &keyValue{Key: []byte("k"), ModRevision: 5}},
		}}, `Watch w0 DELETE "k" at r5`},
		"other":   {"Auth/UserAdd", wiretap.Request, &etcdserverpb.AuthUserAddRequest{Name: "u", Password: wiretap.Hidden}, `UserAdd name "u", password "(hidden)"`},
		"members": {"Cluster/MemberList", wiretap.Answer, &etcdserverpb.MemberListResponse{Members: []*etcdserverpb.Member{{}, {}}}, `MemberList members 2`},
		"unknown": {"Other/Method", wiretap.Request, nil, `Method 12 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			var live transcript.Live
			entries := live.Entries(wiretap.Message{Lane: "anna", Kind: tc.kind, Call: 1, Method: "/etcdserverpb." + tc.method, Body: tc.body, Size: 12})
			require.Len(t, entries, 1)
			require.Equal(t, tc.want, entries[0].Text())
		})
	}
}

// An answer has its duration, and any name of a lane stays on one line.
func TestLine(t *testing.T) {
	var live transcript.Live
	m := wiretap.Message{At: 1e6, Lane: "a\nb", Kind: wiretap.Request, Call: 3, Method: "/etcdserverpb.KV/Range", Body: &rangeRequest{Key: []byte("k")}}
	require.Equal(t, `  0.001000  "a\nb"     #3    → Range "k"`, live.Entries(m)[0].Line())
	m.At, m.Kind, m.Body = 3e6, wiretap.Answer, &etcdserverpb.RangeResponse{Header: at(2)}
	require.Equal(t, `  0.003000  "a\nb"     #3    ← Range r2, no key  (2.000 ms)`, live.Entries(m)[0].Line())
	m.Kind, m.Body, m.Status, m.Lost = wiretap.End, nil, status.New(codes.NotFound, "a\nb"), true
	require.Contains(t, live.Entries(m)[0].Line(), `← Range ended, NotFound: "a\nb" (lost)`)
}
