package txn_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// stage is what most tests stand on: an election of their own on the shared etcd,
// a client that is recorded, and one that is not.
type stage struct {
	t        *testing.T
	ctx      context.Context
	election string
	rec      *etcdtest.Recorder
	kv       *clientv3.Client // recorded
	admin    *clientv3.Client // not recorded
}

func newStage(t *testing.T) *stage {
	t.Helper()
	// On a machine that is busy with much else everything takes its time.
	ctx := etcdtest.ContextFor(t, 2*time.Minute)
	c := etcdtest.Shared(t)
	rec := &etcdtest.Recorder{}
	return &stage{
		t: t, ctx: ctx, election: electionName(t), rec: rec,
		kv: c.Client(t, rec.Attach), admin: c.Client(t),
	}
}

// electionName makes an election's name out of the test's, which may have slashes.
func electionName(t *testing.T) string {
	name := []byte(t.Name())
	for i, b := range name {
		if b == '/' {
			name[i] = '|'
		}
	}
	return string(name)
}

// entry is a candidate with a lease of its own.
func (s *stage) entry(value string) txn.Entry {
	s.t.Helper()
	grant, err := s.admin.Grant(s.ctx, 600)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		_, err := s.admin.Revoke(context.Background(), grant.ID)
		require.NoError(s.t, err)
	})
	return txn.Entry{Election: s.election, Lease: int64(grant.ID), Value: []byte(value)}
}

// enter puts a candidate into the queue.
func (s *stage) enter(value string) (txn.Entry, txn.Place) {
	s.t.Helper()
	e := s.entry(value)
	p, err := txn.ByCreateRevision{}.Enter(s.ctx, s.kv, e)
	require.NoError(s.t, err)
	return e, p
}

// put writes a key by hand.
func (s *stage) put(key, value string, opts ...clientv3.OpOption) int64 {
	s.t.Helper()
	resp, err := s.admin.Put(s.ctx, key, value, opts...)
	require.NoError(s.t, err)
	return resp.Header.Revision
}

// remove deletes a key by hand.
func (s *stage) remove(key string) int64 {
	s.t.Helper()
	resp, err := s.admin.Delete(s.ctx, key)
	require.NoError(s.t, err)
	require.Equal(s.t, int64(1), resp.Deleted)
	return resp.Header.Revision
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

func tokens(cs []eldest.Candidate) []eldest.Token {
	var ts []eldest.Token
	for _, c := range cs {
		ts = append(ts, c.Token)
	}
	return ts
}
