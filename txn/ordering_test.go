package txn_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

var queue txn.ByCreateRevision

func TestEnterNewKeyIsOneTransactionThatLearnsThePlace(t *testing.T) {
	s := newStage(t)
	var entries []txn.Entry
	var want []eldest.Token
	for i := range 4 {
		e, p := s.enter(fmt.Sprint("v", i))
		require.Equal(t, []string{"Txn"}, s.Methods())
		require.Equal(t, p.Revision, int64(p.Token), "the create revision is that of the transaction")
		require.Equal(t, int64(i+1), p.Queue)
		require.True(t, p.Complete)
		require.Equal(t, i == 0, p.First())
		require.Equal(t, want, tokens(p.Ahead), "nearest first")
		require.False(t, p.Adopted)
		for j, ahead := range p.Ahead {
			elder := entries[len(entries)-1-j]
			require.Equal(t, elder.Key(), ahead.Key)
			require.Equal(t, elder.Lease, ahead.Lease, "taken from the key: replies with keys only carry 0")
		}
		entries = append(entries, e)
		want = append([]eldest.Token{p.Token}, want...)
	}
	// The keys are bound to their leases and have their values.
	for i, e := range entries {
		resp, err := s.Admin.Get(s.Ctx, e.Key())
		require.NoError(t, err)
		require.Len(t, resp.Kvs, 1)
		require.Equal(t, e.Lease, resp.Kvs[0].Lease)
		require.Equal(t, fmt.Sprint("v", i), string(resp.Kvs[0].Value))
	}
}

// The form of the request is tested: it decides the server's cost of a registration.
func TestEnterRequestIsAsDocumented(t *testing.T) {
	s := newStage(t)
	e, _ := s.enter("v")
	begin, end := keys.Range(s.Election)
	calls := s.Rec.Calls("Txn")
	require.Len(t, calls, 1)
	got := calls[0].Request.(*etcdserverpb.TxnRequest)

	require.Len(t, got.Compare, 1)
	require.Equal(t, e.Key(), string(got.Compare[0].Key))
	require.Equal(t, etcdserverpb.Compare_CREATE, got.Compare[0].Target)
	require.Equal(t, int64(0), got.Compare[0].GetCreateRevision())
	require.Len(t, got.Success, 2)
	put, line := got.Success[0].GetRequestPut(), got.Success[1].GetRequestRange()
	require.Equal(t, e.Key(), string(put.Key))
	require.Equal(t, e.Lease, put.Lease)
	require.Equal(t, begin, string(line.Key))
	require.Equal(t, end, string(line.RangeEnd))
	require.True(t, line.KeysOnly)
	require.Equal(t, int64(17), line.Limit)
	require.Equal(t, etcdserverpb.RangeRequest_CREATE, line.SortTarget)
	require.Equal(t, etcdserverpb.RangeRequest_DESCEND, line.SortOrder)
	require.Len(t, got.Failure, 1)
	require.Equal(t, e.Key(), string(got.Failure[0].GetRequestRange().Key))
}

// Row 14: an existing key, with the same or another value, is adopted as it is.
func TestEnterExistingKeyIsAdoptedUnchanged(t *testing.T) {
	for _, tc := range []struct{ name, second string }{
		{"the same value", "first"},
		{"another value", "second"},
		{"no value", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			e, p := s.enter("first")
			s.Methods()
			e.Value = []byte(tc.second)
			again, err := queue.Enter(s.Ctx, s.Client, e)
			require.NoError(t, err)
			require.Equal(t, []string{"Txn"}, s.Methods())
			require.Equal(t, p.Token, again.Token, "the create revision is kept")
			require.True(t, again.Adopted)
			require.Equal(t, "first", string(again.Value))
			require.True(t, again.Unknown(), "who is older was not learnt")
			require.False(t, again.First(), "and is no proof")
			value, _ := s.Value(e.Key())
			require.Equal(t, "first", value, "adopting does not write")
		})
	}
}

func TestEnterDoesNotAdoptAKeyOfAnotherLease(t *testing.T) {
	s := newStage(t)
	e := s.entry("mine")
	s.Put(e.Key(), "by hand, without a lease")
	t.Cleanup(func() { s.Remove(e.Key()) })
	require.ErrorIs(t, etcdtest.Err(queue.Enter(s.Ctx, s.Client, e)), eldest.ErrDeposed)
	require.ErrorIs(t, etcdtest.Err(queue.EnterAlone(s.Ctx, s.Client, e)), eldest.ErrDeposed)
}

func TestEnterAfterTheLeaseIsGone(t *testing.T) {
	s := newStage(t)
	e := txn.Entry{Election: s.Election, Lease: 0x7eadbeef, Value: []byte("v")}
	_, err := queue.Enter(s.Ctx, s.Client, e)
	require.Error(t, err)
	require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown, "a refusal by the server is certain")
	_, absent := s.Value(e.Key())
	require.True(t, absent)
}

func TestEnterIgnoresForeignKeysAndReportsThem(t *testing.T) {
	s := newStage(t)
	prefix := keys.Prefix(s.Election)
	foreign := []string{prefix, prefix + "not-hex", prefix + "00ff", prefix + "a/b", prefix + "-1", prefix + "FF"}
	for _, key := range foreign {
		s.Put(key, "foreign")
	}
	t.Cleanup(func() {
		for _, key := range foreign {
			s.Remove(key)
		}
	})
	_, p := s.enter("v")
	require.ElementsMatch(t, foreign, p.Foreign)
	require.Empty(t, p.Ahead)
	require.True(t, p.First(), "nobody is older than a candidate behind foreign keys only")
	require.Equal(t, int64(len(foreign)+1), p.Queue)
}

func TestEnterBehindMoreThanAnAnswerHolds(t *testing.T) {
	s := newStage(t)
	var places []txn.Position
	var entries []txn.Entry
	for range 19 {
		e, p := s.enter("v")
		entries, places = append(entries, e), append(places, p)
	}
	require.True(t, places[16].Complete, "sixteen elders are all known")
	require.Len(t, places[16].Ahead, 16)
	require.False(t, places[17].Complete)
	require.Len(t, places[17].Ahead, 16, "the sixteen nearest")
	require.Equal(t, places[1].Token, places[17].Ahead[15].Token)
	require.False(t, places[17].First())

	// The 19th finds the others by a range read, as of any revision.
	s.Methods()
	p := places[18]
	p.Ahead = nil
	p, err := queue.Ahead(s.Ctx, s.Client, entries[18], p, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.Methods())
	require.Len(t, p.Ahead, 16)
	require.False(t, p.Complete, "a full answer may hide more")
	require.Equal(t, places[17].Token, p.Ahead[0].Token)
}

func TestEnterAlone(t *testing.T) {
	s := newStage(t)
	first, second := s.entry("first"), s.entry("second")

	p, err := queue.EnterAlone(s.Ctx, s.Client, first)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.Methods())
	require.True(t, p.First())
	require.Equal(t, int64(1), p.Queue)

	_, err = queue.EnterAlone(s.Ctx, s.Client, second)
	require.ErrorIs(t, err, eldest.ErrNotElected)
	require.NotErrorIs(t, err, eldest.ErrOutcomeUnknown)
	require.Equal(t, []string{"Txn"}, s.Methods())
	_, absent := s.Value(second.Key())
	require.True(t, absent, "it never queues")

	again, err := queue.EnterAlone(s.Ctx, s.Client, first)
	require.NoError(t, err)
	require.True(t, again.Adopted, "the own key, from an attempt whose reply was lost")
	require.Equal(t, p.Token, again.Token)
	require.True(t, again.Unknown(), "somebody older may have been there: that is asked for next")
}

func TestEnterAloneAmongForeignKeys(t *testing.T) {
	s := newStage(t)
	foreign := keys.Prefix(s.Election) + "zzz"
	s.Put(foreign, "")
	t.Cleanup(func() { s.Remove(foreign) })
	e := s.entry("v")
	require.ErrorIs(t, etcdtest.Err(queue.EnterAlone(s.Ctx, s.Client, e)), eldest.ErrForeignKey)
	_, absent := s.Value(e.Key())
	require.True(t, absent)

	s.enter("a candidate")
	require.ErrorIs(t, etcdtest.Err(queue.EnterAlone(s.Ctx, s.Client, e)), eldest.ErrNotElected, "a candidate is told from a foreign key")
}
