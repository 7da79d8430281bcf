package txn_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

var pointers txn.ByPointer

// join enters the queue with ByPointer.
func (s *stage) join() (txn.Entry, txn.Position) {
	s.T.Helper()
	e := s.entry("v")
	p, err := pointers.Enter(s.Ctx, s.Client, e)
	require.NoError(s.T, err)
	return e, p
}

// However long the queue is, a registration is one request that reads no more than sixteen keys.
// The first seventeen candidates know all older ones; each of the others has a hint that no other
// candidate has.
func TestPointerRegistersWithOneRequest(t *testing.T) {
	s := newStage(t)
	var entries []txn.Entry
	var places []txn.Position
	for i := range 40 {
		s.Methods()
		e, p := s.join()
		require.Equal(t, []string{"Txn"}, s.Methods())
		require.False(t, p.Adopted)
		require.Equal(t, i == 0, p.First())
		if i <= 16 {
			require.True(t, p.Complete)
			require.Len(t, p.Ahead, i)
			require.EqualValues(t, i+1, p.Queue)
			require.EqualValues(t, p.Token, p.Revision)
		} else {
			require.False(t, p.Complete, "a hint is no knowledge of the others")
			require.Len(t, p.Ahead, 1)
			require.Zero(t, p.Revision)
		}
		if i > 0 {
			elder := p.Ahead[0]
			require.Equal(t, entries[i-1].Key(), elder.Key)
			require.Equal(t, entries[i-1].Lease, elder.Lease)
			require.Equal(t, places[i-1].Token, elder.Token)
		}
		entries, places = append(entries, e), append(places, p)
	}
	resp, err := s.Admin.Get(s.Ctx, keys.Newest(s.Election))
	require.NoError(t, err)
	require.Equal(t, entries[39].Key(), string(resp.Kvs[0].Value))
	require.Equal(t, entries[39].Lease, resp.Kvs[0].Lease, "it goes with the lease")
}

// The form of the request is tested: it decides the server's cost of a registration.
func TestPointerRequestIsAsDocumented(t *testing.T) {
	s := newStage(t)
	s.join()
	got := s.Rec.Calls("Txn")[0].Request.(*etcdserverpb.TxnRequest)
	before := got.Success[0].GetRequestTxn()
	read := before.Success[0].GetRequestRange()
	require.True(t, read.KeysOnly)
	require.EqualValues(t, 16, read.Limit)
	require.Equal(t, etcdserverpb.RangeRequest_KEY, read.SortTarget, "no other order has the limit pushed down")
	require.Empty(t, before.Failure[0].GetRequestRange().RangeEnd)
}

// A key that exists, from an attempt whose reply was lost, is adopted; the pointer does not change.
func TestPointerAdopts(t *testing.T) {
	s := newStage(t)
	e, p := s.join()
	_, last := s.join()
	again, err := pointers.Enter(s.Ctx, s.Client, e)
	require.NoError(t, err)
	require.True(t, again.Adopted)
	require.True(t, again.Unknown())
	require.Equal(t, p.Token, again.Token)
	resp, err := s.Admin.Get(s.Ctx, keys.Newest(s.Election))
	require.NoError(t, err)
	require.EqualValues(t, last.Token, resp.Kvs[0].ModRevision)
}

// A queue with candidates that do not move the pointer is read; if it is long the nearest candidate
// stays unknown.
func TestPointerBehindOthers(t *testing.T) {
	s := newStage(t)
	var last eldest.Token
	for i := range 20 {
		_, p := s.enter("v") // without a pointer
		last = p.Token
		if i < 3 {
			_, mine := s.join()
			require.True(t, mine.Complete)
			require.Equal(t, last, mine.Ahead[0].Token)
		}
	}
	e, p := s.join()
	require.True(t, p.Unknown())
	require.False(t, p.First())
	require.EqualValues(t, 24, p.Queue)
	next, err := pointers.Ahead(s.Ctx, s.Client, e, p, 0)
	require.NoError(t, err)
	require.Equal(t, last, next.Ahead[0].Token)
}

// Hints that are missing, wrong or malicious are ignored, and so is a candidate's own earlier key.
func TestPointerThatIsWrong(t *testing.T) {
	s := newStage(t)
	for range 17 {
		s.join()
	}
	for _, hint := range []string{"", "no key at all\x00", keys.Candidate("another", 7)} {
		s.Put(keys.Newest(s.Election), hint)
		_, p := s.join()
		require.True(t, p.Unknown(), "%q", hint)
		require.False(t, p.First())
	}
	e, _ := s.join()
	s.Remove(e.Key())
	p, err := pointers.Enter(s.Ctx, s.Client, e)
	require.NoError(t, err)
	require.True(t, p.Unknown())
}

// With permission for the election's own range only, the registration uses a search.
func TestPointerWithoutPermission(t *testing.T) {
	s := newStage(t)
	elder, _ := s.enter("v")
	e := s.entry("v")
	denied := false
	kv := etcdtest.WithTxns(s.Client, func(t *etcdtest.Txn) (*clientv3.TxnResponse, error) {
		if !denied {
			denied = true
			return nil, rpctypes.ErrPermissionDenied // the one with the pointer
		}
		return t.Commit(t.Context)
	})
	p, err := pointers.Enter(s.Ctx, kv, e)
	require.NoError(t, err)
	require.True(t, p.Complete)
	require.Equal(t, elder.Key(), p.Ahead[0].Key)
	resp, err := s.Admin.Get(s.Ctx, keys.Newest(s.Election))
	require.NoError(t, err)
	require.Empty(t, resp.Kvs)
}
