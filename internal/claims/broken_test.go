package claims_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/claims"
)

// Wrong: a session whose lease nothing is known of gets a memory of its own that is not in
// past.leases yet. Two sessions of one lease (lease.Config.Shared, or Resume before the
// first one has ended) have two, and the one that dooms last takes the other's place: what
// that one doomed, or that the lease was revoked, is forgotten.
//
// Proposed: past.leases holds one *unconfirmed for each lease of which there is a session
// (New puts it there, the end of the last session takes it out when it is empty), or kept
// merges.
func TestBrokenTwoSessionsOfOneLeaseForget(t *testing.T) {
	lease := rand.Int64()
	first, second := claims.New(t.Context(), lease), claims.New(t.Context(), lease)
	require.NoError(t, take(t, first, key("a")).Doom(7))
	require.NoError(t, take(t, second, key("b")).Doom(8))
	third := take(t, claims.New(t.Context(), lease), key("a"))
	require.ErrorIs(t, third.Hold(8), claims.ErrDoomed)
	require.ErrorIs(t, third.Hold(7), claims.ErrDoomed)
}

// Wrong: as above, and a revocation is forgotten: Revoking makes a memory beside that of the
// session, which does not doom anything until then, and the session's takes its place.
func TestBrokenRevocationIsForgotten(t *testing.T) {
	lease := rand.Int64()
	c := take(t, claims.New(t.Context(), lease), key("a")) // of another session that lives
	claims.Revoking(lease)
	require.NoError(t, c.Doom(7))
	require.True(t, claims.Revoked(lease))
}
