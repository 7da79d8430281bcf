package requestkey_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/requestkey"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// stage is etcdtest's, with candidates that a test puts into the queue itself.
type stage struct{ *etcdtest.Env }

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{etcdtest.NewEnv(t, etcdtest.Shared(t))}
}

// enter puts a candidate into the queue, with a lease of its own.
func (s *stage) enter(value string) (txn.Entry, txn.Position) {
	s.T.Helper()
	grant, err := s.Admin.Grant(s.Ctx, 600)
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
		require.NoError(s.T, etcdtest.Err(s.Admin.Revoke(context.Background(), grant.ID)))
	})
	e := txn.Entry{Election: s.Election, Lease: int64(grant.ID), Value: []byte(value)}
	p, err := txn.ByCreateRevision{}.Enter(s.Ctx, s.Client, e)
	require.NoError(s.T, err)
	return e, p
}

// posted returns a candidate with a request key.
func (s *stage) posted(value string) (txn.Entry, eldest.Candidate, requestkey.Key) {
	s.T.Helper()
	e, p := s.enter("candidate")
	e.Value = []byte(value)
	box, err := requestkey.Write(s.Ctx, s.Client, e, p.Token)
	require.NoError(s.T, err)
	return e, eldest.Candidate{Key: e.Key(), Lease: e.Lease, Token: p.Token}, box
}

func TestPost(t *testing.T) {
	s := newStage(t)
	e, c, box := s.posted("first")
	require.Equal(t, requestkey.Key{Value: []byte("first"), Mod: box.Mod, Created: box.Mod, Lease: e.Lease}, box)
	value, _ := s.Value(e.Key())
	require.Equal(t, "candidate", value, "the candidate's own key is not touched")
	e.Value = []byte("second")
	s.Rec.Reset()
	again, err := requestkey.Write(s.Ctx, s.Client, e, c.Token)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.Methods(), "one request")
	require.Greater(t, again.Mod, box.Mod)
	require.Equal(t, box.Created, again.Created)

	require.ErrorIs(t, etcdtest.Err(requestkey.Write(s.Ctx, s.Client, e, c.Token+1)), eldest.ErrDeposed)
	s.Remove(e.Key())
	require.ErrorIs(t, etcdtest.Err(requestkey.Write(s.Ctx, s.Client, e, c.Token)), eldest.ErrDeposed)
}

func TestSwap(t *testing.T) {
	s := newStage(t)
	l, leader, leaders := s.posted("leader's")
	_, target, targets := s.posted("target's")
	swap := requestkey.Swap{
		Election: s.Election, Lease: l.Lease, Mod: leaders.Mod, Value: []byte("new"),
		While: []eldest.Candidate{leader, target}, Unchanged: []requestkey.KeyAt{{Lease: target.Lease, Mod: targets.Mod}}, Before: target.Token,
	}
	s.Rec.Reset()
	done, err := swap.Do(s.Ctx, s.Client)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.Methods(), "one request")
	require.True(t, done.Done)
	require.Equal(t, "new", string(done.Key.Value))
	require.Equal(t, done.Revision, done.Key.Mod)
	require.Equal(t, l.Lease, done.Key.Lease, "still bound to the candidate's lease")
	require.Len(t, done.Older, 1)
	require.Equal(t, leader.Token, done.Older[0].Token)

	// Once more: the request key was written since, and Key shows the content.
	again, err := swap.Do(s.Ctx, s.Client)
	require.NoError(t, err)
	require.False(t, again.Done)
	require.Equal(t, done.Key, again.Key)
	require.Zero(t, again.Gone)

	next := swap
	next.Mod = done.Key.Mod
	next.Unchanged = []requestkey.KeyAt{{Lease: target.Lease, Mod: targets.Mod - 1}}
	got, err := next.Do(s.Ctx, s.Client)
	require.NoError(t, err)
	require.False(t, got.Done, "somebody has written the target's request key")
	require.Zero(t, got.Gone)
	require.Equal(t, next.Mod, got.Key.Mod)

	next.Unchanged = nil
	s.Remove(target.Key)
	got, err = next.Do(s.Ctx, s.Client)
	require.NoError(t, err)
	require.False(t, got.Done)
	require.Equal(t, target, got.Gone)

	next.Lease = target.Lease + 1
	next.While = nil
	got, err = next.Do(s.Ctx, s.Client)
	require.NoError(t, err)
	require.False(t, got.Done)
	require.Zero(t, got.Key, "there is none")
}

func TestUnpost(t *testing.T) {
	s := newStage(t)
	e, _, box := s.posted("v")
	require.NoError(t, requestkey.Delete(s.Ctx, s.Client, s.Election, e.Lease, box.Created-1))
	_, absent := s.Value(keys.Request(s.Election, e.Lease))
	require.False(t, absent, "another life's is left alone")
	for range 2 {
		require.NoError(t, requestkey.Delete(s.Ctx, s.Client, s.Election, e.Lease, box.Created))
		_, absent = s.Value(keys.Request(s.Election, e.Lease))
		require.True(t, absent)
	}
}

// Survey reads the whole election, at one revision, in one request.
func TestSurvey(t *testing.T) {
	s := newStage(t)
	e, first, box := s.posted("box")
	_, p := s.enter("second")
	s.Put(s.Election+"/no candidate", "")
	s.Put(keys.Request(s.Election, e.Lease)+"/none", "")
	s.Put(keys.Request(s.Election+"2", e.Lease), "another election's")
	s.Rec.Reset()
	line, boxes, err := requestkey.Survey(s.Ctx, s.Client, s.Election)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.Methods())
	require.Equal(t, []eldest.Token{first.Token, p.Token}, []eldest.Token{line.Queue[0].Token, line.Queue[1].Token})
	require.Equal(t, "candidate", string(line.Queue[0].Value))
	require.Equal(t, []string{s.Election + "/no candidate"}, line.Foreign)
	require.Equal(t, map[int64]requestkey.Key{e.Lease: box}, boxes)

	queue, err := txn.ReadSnapshot(s.Ctx, s.Client, s.Election)
	require.NoError(t, err)
	require.Equal(t, []string{"Range"}, s.Methods())
	require.Equal(t, line, queue)
}
