package txn_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/txn"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// stage is the environment of etcdtest, with candidates that enter the queue by hand.
type stage struct{ *etcdtest.Env }

func newStage(t *testing.T) *stage {
	t.Helper()
	return &stage{etcdtest.NewEnv(t, etcdtest.Shared(t))}
}

// entry is a candidate with a lease of its own.
func (s *stage) entry(value string) txn.Entry {
	s.T.Helper()
	grant, err := s.Admin.Grant(s.Ctx, 600)
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
		require.NoError(s.T, etcdtest.Err(s.Admin.Revoke(context.Background(), grant.ID)))
	})
	return txn.Entry{Election: s.Election, Lease: int64(grant.ID), Value: []byte(value)}
}

// enter puts a candidate into the queue.
func (s *stage) enter(value string) (txn.Entry, txn.Position) {
	s.T.Helper()
	e := s.entry(value)
	p, err := txn.ByCreateRevision{}.Enter(s.Ctx, s.Client, e)
	require.NoError(s.T, err)
	return e, p
}

func tokens(cs []eldest.Candidate) []eldest.Token {
	var ts []eldest.Token
	for _, c := range cs {
		ts = append(ts, c.Token)
	}
	return ts
}
