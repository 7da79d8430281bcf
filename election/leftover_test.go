package election_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// leavesItsKey has a candidate lead whose key etcd then refuses to remove: to the caller
// of Resign, and in the background.
func (s *stage) leavesItsKey(r *denying, session *lease.Session) *election.Leadership {
	s.t.Helper()
	c := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = r })
	l := s.lead(c)
	refused := r.n.Load()
	r.now.Store(true)
	require.ErrorIs(s.t, l.Resign(s.ctx), rpctypes.ErrPermissionDenied)
	s.until("the background was refused as well", func() bool { return r.n.Load() == refused+2 })
	require.ErrorIs(s.t, c.Close(s.ctx), rpctypes.ErrPermissionDenied)
	require.Equal(s.t, []string{c.Key()}, s.queue())
	return l
}

// G2 and G4: whose hands the key of an ended tenure falls into makes no difference. The
// session remembers what its candidates have left, for those that come after them: a guarded
// write of an ended tenure that is still on its way must find its token gone.
//
// Broken by register looking at the last token of its own candidate only.
func TestKeyOfAnEndedTenureIsNotAdoptedByTheNextCandidate(t *testing.T) {
	s := newStage(t)
	r := newDenying(s.admin)
	session := s.session(s.admin)
	ended := []*election.Leadership{s.leavesItsKey(r, session)}

	// One that may not remove it does not lead with it either, nor does it make the
	// session forget.
	_, err := s.candidate("v", on(session), func(cfg *election.Config) { cfg.KV = r }).Campaign(s.ctx)
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
	r.now.Store(false)

	for range 2 {
		l := s.leavesItsKey(r, session)
		r.now.Store(false)
		for _, before := range ended {
			require.Greater(t, l.Token(), before.Token(), "an earlier candidate's token")
			late, err := s.admin.Txn(s.ctx).If(before.Guard().Compare()).Then(clientv3.OpPut(t.Name(), "late")).Commit()
			require.NoError(t, err)
			require.False(t, late.Succeeded, "of a tenure that has ended")
		}
		ended = append(ended, l)
	}
}

// Resume is asked for by name, and takes over what it finds: the new session remembers
// nothing of the old one's.
//
// Broken by keeping what was left in the process and not in the session.
func TestResumeTakesOverAKeyThatWasLeft(t *testing.T) {
	s := newStage(t)
	r := newDenying(s.admin)
	session := s.session(s.admin)
	before := s.leavesItsKey(r, session)
	session.Abandon()
	resumed, err := lease.Resume(s.ctx, lease.Config{Lease: s.admin}, session.ID())
	require.NoError(t, err)
	defer func() { require.NoError(t, resumed.Close(s.ctx)) }()
	require.Equal(t, before.Token(), s.lead(s.candidate("v", on(resumed))).Token())
}
