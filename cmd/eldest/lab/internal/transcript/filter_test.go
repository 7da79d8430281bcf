package transcript_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// The messages of an election are kept: its keys anywhere in a request, watches on them, leases,
// notes. The rest is not.
func TestFilter(t *testing.T) {
	f := transcript.NewFilter("e/", "box/e/")
	keep := func(want bool, messages ...wiretap.Message) {
		t.Helper()
		for _, m := range messages {
			require.Equal(t, want, f.Keep(m), m)
		}
	}
	get := func(call int, from, end string) []wiretap.Message {
		return []wiretap.Message{
			ask("anna", call, "KV/Range", &rangeRequest{Key: []byte(from), RangeEnd: []byte(end)}),
			answer("anna", call, "KV/Range", &etcdserverpb.RangeResponse{}),
		}
	}
	keep(true, get(1, "e/1", "")...)
	keep(true, get(2, "a", "z")...)
	keep(true, get(3, "a", "\x00")...)
	keep(true, get(4, "box/e/1", "")...)
	keep(false, get(5, "e", "")...)
	keep(false, get(6, "e0", "z")...)
	keep(false, get(7, "c", "e/")...)
	keep(true, ask("anna", 8, "KV/Txn", &txnRequest{Compare: []*etcdserverpb.Compare{compareCreate("e/1", 2)}}))
	keep(true, ask("anna", 9, "KV/Txn", &txnRequest{Failure: []*etcdserverpb.RequestOp{putOp("e/1", "", 0)}}))
	keep(false, ask("anna", 10, "KV/Txn", &txnRequest{Success: []*etcdserverpb.RequestOp{rangeOp("x")}}))
	keep(true, ask("anna", 11, "Lease/LeaseGrant", &etcdserverpb.LeaseGrantRequest{}))
	keep(false, ask("anna", 12, "Cluster/MemberList", &etcdserverpb.MemberListRequest{}))
	keep(true, wiretap.Message{Kind: wiretap.Note})
	created := func(id int64) wiretap.Message {
		return answer("anna", 13, "Watch/Watch", &etcdserverpb.WatchResponse{Created: true, WatchId: id})
	}
	keep(false, ask("anna", 13, "Watch/Watch", watchKey("x")))
	keep(true, ask("anna", 13, "Watch/Watch", watchKey("e/1")))
	keep(false, created(0))
	keep(true, created(1))
	keep(false, answer("anna", 13, "Watch/Watch", deleted("x", 3, 0)))
	keep(true, answer("anna", 13, "Watch/Watch", deleted("e/1", 3, 1)))
	require.True(t, transcript.NewFilter().Keep(get(1, "x", "")[0]))
}
