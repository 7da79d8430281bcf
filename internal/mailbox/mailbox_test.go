package mailbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/mailbox"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// stage is an election on the shared etcd, a client that is recorded, and one that is not.
type stage struct {
	t         *testing.T
	ctx       context.Context
	election  string
	rec       *etcdtest.Recorder
	kv, admin *clientv3.Client
}

func newStage(t *testing.T) *stage {
	t.Helper()
	c, rec := etcdtest.Shared(t), &etcdtest.Recorder{}
	return &stage{
		t: t, ctx: etcdtest.ContextFor(t, 2*time.Minute), election: etcdtest.Election(t), rec: rec,
		kv: c.Client(t, rec.Attach), admin: c.Client(t),
	}
}

// enter puts a candidate into the queue, with a lease of its own.
func (s *stage) enter(value string) (txn.Entry, txn.Place) {
	s.t.Helper()
	grant, err := s.admin.Grant(s.ctx, 600)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		_, err := s.admin.Revoke(context.Background(), grant.ID)
		require.NoError(s.t, err)
	})
	e := txn.Entry{Election: s.election, Lease: int64(grant.ID), Value: []byte(value)}
	p, err := txn.ByCreateRevision{}.Enter(s.ctx, s.kv, e)
	require.NoError(s.t, err)
	return e, p
}

// put and remove change a key by hand.
func (s *stage) put(key, value string) {
	s.t.Helper()
	_, err := s.admin.Put(s.ctx, key, value)
	require.NoError(s.t, err)
}

func (s *stage) remove(key string) {
	s.t.Helper()
	resp, err := s.admin.Delete(s.ctx, key)
	require.NoError(s.t, err)
	require.Equal(s.t, int64(1), resp.Deleted)
}

// value reads a key; absent reports that there is none.
func (s *stage) value(key string) (value string, absent bool) {
	s.t.Helper()
	resp, err := s.admin.Get(s.ctx, key)
	require.NoError(s.t, err)
	if len(resp.Kvs) == 0 {
		return "", true
	}
	return string(resp.Kvs[0].Value), false
}

// methods returns what the recorded client has sent since the last call.
func (s *stage) methods() []string {
	defer s.rec.Reset()
	return s.rec.Methods()
}

// posted is a candidate with a mailbox.
func (s *stage) posted(value string) (txn.Entry, eldest.Candidate, mailbox.Box) {
	s.t.Helper()
	e, p := s.enter("candidate")
	e.Value = []byte(value)
	box, err := mailbox.Post(s.ctx, s.kv, e, p.Token)
	require.NoError(s.t, err)
	return e, eldest.Candidate{Key: e.Key(), Lease: e.Lease, Token: p.Token}, box
}

func TestPost(t *testing.T) {
	s := newStage(t)
	e, c, box := s.posted("first")
	require.Equal(t, mailbox.Box{Value: []byte("first"), Mod: box.Mod, Created: box.Mod, Lease: e.Lease}, box)
	value, _ := s.value(e.Key())
	require.Equal(t, "candidate", value, "the candidate's own key is not touched")
	e.Value = []byte("second")
	s.rec.Reset()
	again, err := mailbox.Post(s.ctx, s.kv, e, c.Token)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.methods(), "one request")
	require.Greater(t, again.Mod, box.Mod)
	require.Equal(t, box.Created, again.Created)

	_, err = mailbox.Post(s.ctx, s.kv, e, c.Token+1)
	require.ErrorIs(t, err, eldest.ErrDeposed)
	s.remove(e.Key())
	_, err = mailbox.Post(s.ctx, s.kv, e, c.Token)
	require.ErrorIs(t, err, eldest.ErrDeposed)
}

func TestSwap(t *testing.T) {
	s := newStage(t)
	l, leader, leaders := s.posted("leader's")
	_, target, targets := s.posted("target's")
	swap := mailbox.Swap{
		Election: s.election, Lease: l.Lease, Mod: leaders.Mod, Value: []byte("new"),
		While: []eldest.Candidate{leader, target}, Boxes: []mailbox.BoxAt{{Lease: target.Lease, Mod: targets.Mod}}, Before: target.Token,
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
	next.Boxes = []mailbox.BoxAt{{Lease: target.Lease, Mod: targets.Mod - 1}}
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
	require.NoError(t, mailbox.Unpost(s.ctx, s.kv, s.election, e.Lease, box.Created-1))
	_, absent := s.value(keys.Mailbox(s.election, e.Lease))
	require.False(t, absent, "another life's is left alone")
	for range 2 {
		require.NoError(t, mailbox.Unpost(s.ctx, s.kv, s.election, e.Lease, box.Created))
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
	line, boxes, err := mailbox.Survey(s.ctx, s.kv, s.election)
	require.NoError(t, err)
	require.Equal(t, []string{"Txn"}, s.methods())
	require.Equal(t, []eldest.Token{first.Token, p.Token}, []eldest.Token{line.Queue[0].Token, line.Queue[1].Token})
	require.Equal(t, "candidate", string(line.Queue[0].Value))
	require.Equal(t, []string{s.election + "/no candidate"}, line.Foreign)
	require.Equal(t, map[int64]mailbox.Box{e.Lease: box}, boxes)

	queue, err := txn.ReadLine(s.ctx, s.kv, s.election)
	require.NoError(t, err)
	require.Equal(t, []string{"Range"}, s.methods())
	require.Equal(t, line, queue)
}
