package election_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
