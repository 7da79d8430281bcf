package election_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// A session that was not opened is refused instead of a panic at the first campaign.
func TestSessionThatWasNotOpened(t *testing.T) {
	t.Parallel()
	cli := etcdtest.Shared(t).Client(t)
	cfg := election.Config{Election: etcdtest.Election(t), Session: new(lease.Session), KV: cli, Watcher: cli}
	require.ErrorIs(t, etcdtest.Err(election.New(cfg)), eldest.ErrInvalid)
}

// A client that was made from parts may have no KV or no Watcher: it is refused instead of a panic.
func TestClientWithoutItsParts(t *testing.T) {
	s := newEnv(t)
	parts := clientv3.NewCtxClient(s.Ctx)
	cfg := election.Config{Election: s.Election, Session: s.session(s.Client), KV: s.Client, Watcher: parts}
	require.ErrorIs(t, etcdtest.Err(election.New(cfg)), eldest.ErrInvalid)
	cfg.KV, cfg.Watcher = parts, s.Client
	require.ErrorIs(t, etcdtest.Err(election.New(cfg)), eldest.ErrInvalid)
	one := eldest.Candidate{Key: s.lead(s.candidate("v")).Key(), Token: 1}
	require.ErrorIs(t, election.Evict(s.Ctx, parts, s.Election, one), eldest.ErrInvalid)
}
