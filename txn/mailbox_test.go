package txn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// posted is a candidate with a mailbox.
func (s *stage) posted(value string) (txn.Entry, eldest.Candidate, txn.Box) {
	s.t.Helper()
	e, p := s.enter("candidate")
	e.Value = []byte(value)
	box, err := txn.Post(s.ctx, s.kv, e, p.Token)
	require.NoError(s.t, err)
	return e, eldest.Candidate{Key: e.Key(), Lease: e.Lease, Token: p.Token}, box
}

func TestPost(t *testing.T) {
	s := newStage(t)
	e, c, box := s.posted("first")
	require.Equal(t, txn.Box{Value: []byte("first"), Mod: box.Mod, Created: box.Mod, Lease: e.Lease}, box)
	value, _ := s.value(e.Key())
	require.Equal(t, "candidate", value, "the candidate's own key is not touched")
	e.Value = []byte("second")
	s.rec.Reset()
	again, err := txn.Post(s.ctx, s.kv, e, c.Token)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.methods(), "one request")
	require.Greater(t, again.Mod, box.Mod)
	require.Equal(t, box.Created, again.Created)

	_, err = txn.Post(s.ctx, s.kv, e, c.Token+1)
	require.ErrorIs(t, err, eldest.ErrDeposed)
	s.remove(e.Key())
	_, err = txn.Post(s.ctx, s.kv, e, c.Token)
	require.ErrorIs(t, err, eldest.ErrDeposed)
}

func TestSwap(t *testing.T) {
	s := newStage(t)
	l, leader, leaders := s.posted("leader's")
	_, target, targets := s.posted("target's")
	swap := txn.Swap{
		Election: s.election, Lease: l.Lease, Mod: leaders.Mod, Value: []byte("new"),
		While: []eldest.Candidate{leader, target}, Boxes: []txn.BoxAt{{Lease: target.Lease, Mod: targets.Mod}}, Before: target.Token,
	}
	s.rec.Reset()
	done, err := swap.Do(s.ctx, s.kv)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.methods(), "one request")
	require.True(t, done.Done)
	require.Equal(t, "new", string(done.Box.Value))
	require.Equal(t, done.Revision, done.Box.Mod)
	require.Equal(t, l.Lease, done.Box.Lease, "still bound to the candidate's lease")
	require.Len(t, done.Older, 1)
	require.Equal(t, leader.Token, done.Older[0].Token)

	// Once more: somebody has written since, and Box says what.
	again, err := swap.Do(s.ctx, s.kv)
	require.NoError(t, err)
	require.False(t, again.Done)
	require.Equal(t, done.Box, again.Box)
	require.Zero(t, again.Gone)

	next := swap
	next.Mod = done.Box.Mod
	next.Boxes = []txn.BoxAt{{Lease: target.Lease, Mod: targets.Mod - 1}}
	got, err := next.Do(s.ctx, s.kv)
	require.NoError(t, err)
	require.False(t, got.Done, "somebody has written the target's mailbox")
	require.Zero(t, got.Gone)
	require.Equal(t, next.Mod, got.Box.Mod)

	next.Boxes = nil
	s.remove(target.Key)
	got, err = next.Do(s.ctx, s.kv)
	require.NoError(t, err)
	require.False(t, got.Done)
	require.Equal(t, target, got.Gone)

	next.Lease = target.Lease + 1
	next.While = nil
	got, err = next.Do(s.ctx, s.kv)
	require.NoError(t, err)
	require.False(t, got.Done)
	require.Zero(t, got.Box, "there is none")
}

func TestUnpost(t *testing.T) {
	s := newStage(t)
	e, _, box := s.posted("v")
	require.NoError(t, txn.Unpost(s.ctx, s.kv, s.election, e.Lease, box.Created-1))
	_, absent := s.value(keys.Mailbox(s.election, e.Lease))
	require.False(t, absent, "another life's is left alone")
	for range 2 {
		require.NoError(t, txn.Unpost(s.ctx, s.kv, s.election, e.Lease, box.Created))
		_, absent = s.value(keys.Mailbox(s.election, e.Lease))
		require.True(t, absent)
	}
}

// All of an election, at one revision, in one request.
func TestSurvey(t *testing.T) {
	s := newStage(t)
	e, first, box := s.posted("box")
	_, p := s.enter("second")
	s.put(s.election+"/no candidate", "")
	s.put(keys.Mailbox(s.election, e.Lease)+"/none", "")
	s.put(keys.Mailbox(s.election+"2", e.Lease), "another election's")
	s.rec.Reset()
	line, err := txn.Survey(s.ctx, s.kv, s.election)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.methods())
	require.Equal(t, []eldest.Token{first.Token, p.Token}, tokens(line.Queue))
	require.Equal(t, "candidate", string(line.Queue[0].Value))
	require.Equal(t, []string{s.election + "/no candidate"}, line.Foreign)
	require.Equal(t, map[int64]txn.Box{e.Lease: box}, line.Boxes)

	queue, err := txn.ReadLine(s.ctx, s.kv, s.election)
	require.NoError(t, err)
	require.Equal(t, []string{"Range"}, s.methods())
	line.Boxes = nil
	require.Equal(t, line, queue)
}
