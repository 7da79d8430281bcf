package eldest_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// requests returns the requests for whose replies a caller waits.
func requests(rec *etcdtest.Recorder) []string {
	return slices.DeleteFunc(rec.Methods(), func(m string) bool { return m == "Watch" })
}

// A cold start takes two requests, grant and registration, for the first candidate of a queue as
// for the last. Fails if a candidate sends a second request for its predecessor, or reads its own
// key before it watches it.
func TestColdStartIsTwoRequests(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	name := etcdtest.Election(t)
	for i := range 3 {
		var rec etcdtest.Recorder
		p := electiontest.Join(t, c.Client(t, rec.Attach), name, still)
		require.Equal(t, []string{"LeaseGrant"}, requests(&rec))
		place, err := p.Candidate.Register(etcdtest.Context(t))
		require.NoError(t, err)
		require.Equal(t, []string{"LeaseGrant", "Txn"}, requests(&rec), "candidate %d", i)
		require.EqualValues(t, i+1, place.Queue)
		require.Equal(t, i == 0, place.Predecessor == "")
		awaitWatch(t, &rec, p.Candidate.Key())
		if i == 0 {
			require.NoError(t, etcdtest.Err(p.Candidate.Await(etcdtest.Context(t))))
		}
		require.Equal(t, []string{"LeaseGrant", "Txn"}, requests(&rec), "candidate %d", i)
	}
}

// Campaign and Try of the only candidate send one request to win. Try sends one request as well if
// another candidate leads.
func TestWinningAloneIsOneRequest(t *testing.T) {
	t.Parallel()
	var rec etcdtest.Recorder
	c, name := etcdtest.Shared(t), etcdtest.Election(t)
	p := electiontest.Join(t, c.Client(t, rec.Attach), name, still)
	for _, win := range []func() error{
		func() error { l, err := p.Candidate.Campaign(etcdtest.Context(t)); return resigned(t, l, err) },
		func() error { l, err := p.Candidate.Try(etcdtest.Context(t)); return resigned(t, l, err) },
	} {
		rec.Reset()
		require.NoError(t, win())
		require.Equal(t, []string{"Txn", "Txn"}, requests(&rec), "registration and resignation")
	}
	electiontest.Join(t, c.Client(t), name).Lead(t)
	rec.Reset()
	require.ErrorIs(t, etcdtest.Err(p.Candidate.Try(etcdtest.Context(t))), eldest.ErrNotElected)
	require.Equal(t, []string{"Txn"}, requests(&rec))
}

// A graceful hand-over costs the waiter one read after the event: of its own key, at the revision
// of the event, from whichever member sent the event. Fails if the winner reads the whole queue, or
// asks a quorum.
func TestHandoverIsOnePointRead(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{}) // its own cluster: other changes would cause reads
	name := etcdtest.Election(t)
	var rec etcdtest.Recorder
	first, second := electiontest.Join(t, c.Client(t), name), electiontest.Join(t, c.Client(t, rec.Attach), name, still)
	tenure := first.Lead(t)
	result := second.Queue(t)
	awaitWatch(t, &rec, tenure.Key())
	require.Zero(t, rec.Count("Range"))
	watched := watchesOf(&rec, tenure.Key())
	require.Len(t, watched, 1)
	require.Zero(t, watched[0].StartRevision, "a start revision costs up to 100 ms")
	rec.Reset()
	require.NoError(t, tenure.Resign(etcdtest.Context(t)))
	electiontest.Wins(t, result)
	events := rec.Events()
	require.Len(t, events, 1)
	require.Len(t, etcdtest.Questions(rec.Calls("Range", "Txn")), 1)
	require.NotContains(t, requests(&rec), "Txn")
	read := rec.Calls("Range")[0].Request.(*etcdserverpb.RangeRequest)
	require.Equal(t, second.Candidate.Key(), string(read.Key))
	require.Empty(t, read.RangeEnd)
	require.Equal(t, events[0].Kv.ModRevision, read.Revision)
	require.True(t, read.Serializable)
}
