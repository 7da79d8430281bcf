package election_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// TestHintIsNoReasonNotToLead: nobody stands, a foreign key is in the range; two candidates
// try by turns, each resigning at once. From the 18th registration on each is refused with
// ErrNotElected, because the pointer names the other one, which has left.
func TestHintIsNoReasonNotToLead(t *testing.T) {
	s := newStage(t)
	require.NoError(t, etcdtest.Err(s.Admin.Put(s.Ctx, s.Election+"/notes", "foreign")))
	a, b := s.candidate("a"), s.candidate("b")
	for i := range 24 {
		c := a
		if i%2 == 1 {
			c = b
		}
		s.queued(1) // the foreign key alone
		l, err := c.Try(s.Ctx)
		require.NoError(t, err, "try %d: nobody stands", i)
		require.NoError(t, l.Resign(s.Ctx))
	}
}
