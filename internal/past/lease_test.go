package past_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/past"
)

// Doomed tokens and owed keys outlive the session, until it is known that no request can arrive.
func TestWhatMayArriveOutlivesItsSession(t *testing.T) {
	id := rand.Int64()
	first := past.Of(id)
	first.Doom(7)
	first.Doom(8)
	first.Spare(8)
	first.Spare(8)
	first.Owe("a")
	first.Done()
	first.Doom(9) // for a request that the session had still to send

	next := past.Of(id)
	require.True(t, next.Doomed(7))
	require.False(t, next.Doomed(8))
	require.True(t, next.Doomed(9))
	require.True(t, next.Owed("a"))
	require.False(t, next.Owed("b"))
	past.Forget(id)
	require.False(t, past.Of(id).Doomed(7), "another lease of the same ID")
}

// A lease of which no request may arrive is deleted with its last session.
func TestSettledLeaseIsForgotten(t *testing.T) {
	id := rand.Int64()
	one, two := past.Of(id), past.Of(id)
	require.Same(t, one, two)
	one.Done()
	require.Same(t, one, past.Of(id))
	two.Done()
	two.Done()
	require.NotSame(t, one, past.Of(id))
}

// An answer may be older than the confirmation that its key is deleted. A token stays doomed while
// any candidate of the lease waits for an answer.
//
// Fails if a token is deleted as soon as the deletion of its key is confirmed.
func TestOldAnswerFindsNoDeadToken(t *testing.T) {
	l := past.Of(rand.Int64())
	l.Doom(7)
	l.Enter()
	l.Enter()
	l.Spare(7)
	l.Entered()
	require.True(t, l.Doomed(7), "the second answer may name a key that is gone")
	l.Entered()
	require.False(t, l.Doomed(7), "nothing is kept of what nobody asks for")
	l.Doom(8)
	l.Spare(8)
	require.False(t, l.Doomed(8))
}

// A token has one holder in all sessions of the lease.
func TestTokenHasOneHolder(t *testing.T) {
	l := past.Of(rand.Int64())
	a, b := new(int), new(int)
	require.True(t, l.Hold(7, a))
	require.True(t, l.Hold(7, a))
	require.False(t, l.Hold(7, b))
	require.True(t, l.Held(7, b))
	require.False(t, l.Held(7, a))
	require.False(t, l.Held(8, a))
	l.Release(7)
	require.True(t, l.Hold(7, b))
}

// A revocation is remembered until it is answered, and no longer than a request can be under way.
func TestRevocationsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := rand.Int64(), rand.Int64()
		require.False(t, past.Revoked(first))
		past.Revoking(first)
		require.True(t, past.Revoked(first))
		past.Refused(first)
		require.False(t, past.Revoked(first), "the lease lives on")
		past.Revoking(first)
		past.Forget(first)
		require.False(t, past.Revoked(first), "the lease is gone")

		past.Revoking(first) // by one of two sessions of the lease; it is never answered
		past.Revoking(first)
		past.Refused(first)
		require.True(t, past.Revoked(first), "the refusal was the answer to the other request")
		past.Forget(first)
		past.Refused(first) // by a session that was told late
		require.False(t, past.Revoked(first))
		past.Revoking(first)
		require.True(t, past.Revoked(first))

		time.Sleep(59 * time.Minute)
		past.Revoking(second)
		require.True(t, past.Revoked(first))
		time.Sleep(2 * time.Minute)
		past.Revoking(rand.Int64())
		require.False(t, past.Revoked(first))
		require.True(t, past.Revoked(second))
	})
}
