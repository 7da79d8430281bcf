package claims_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/claims"
)

// session makes the claims of a session of a lease of its own, and what ends it.
func session(t *testing.T) (*claims.Claims, int64, context.CancelCauseFunc) {
	lease := rand.Int64()
	ctx, end := context.WithCancelCause(t.Context())
	return claims.New(ctx, lease), lease, end
}

func key(name string) claims.Name { return claims.Name{Key: name} }

// take claims a name that must be free.
func take(t *testing.T, cs *claims.Claims, name claims.Name) *claims.Claim {
	t.Helper()
	c, err := cs.Claim(name)
	require.NoError(t, err)
	return c
}

// untilStopped is a clean-up that has nothing to do.
func untilStopped(ctx context.Context) { <-ctx.Done() }

// One candidate has a name at a time. Through another client the same name is another one.
func TestClaimIsExclusive(t *testing.T) {
	cs, _, _ := session(t)
	a := take(t, cs, key("a"))
	_, err := cs.Claim(key("a"))
	require.ErrorIs(t, err, eldest.ErrCampaigning)
	take(t, cs, key("b"))
	take(t, cs, claims.Name{Client: "of a namespace", Key: "a"})
	a.Release()
	again := take(t, cs, key("a"))
	a.Release() // twice: the claim of now is another one
	_, err = cs.Claim(key("a"))
	require.ErrorIs(t, err, eldest.ErrCampaigning)
	again.Release()

	var won atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := cs.Claim(key("a")); err == nil {
				won.Add(1)
			} else if !errors.Is(err, eldest.ErrCampaigning) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
}

// A new claim stops the clean-up before it and inherits what is owed, whoever of many that
// wait for it stopped it.
//
// Broken by a clean-up that forgets at its end what is owed: in about one round of a
// hundred nobody looks out for it any more.
func TestCleanUpEndsWithTheNextClaim(t *testing.T) {
	cs, _, end := session(t)
	for round := range 1000 {
		name := key(strconv.Itoa(round))
		c := take(t, cs, name)
		require.False(t, c.Owed())
		require.True(t, c.Clean(true, untilStopped))
		require.NotNil(t, cs.Cleaning(name))
		c.Clear()
		require.Nil(t, cs.Cleaning(name), "what may yet arrive is not waited for")
		var won, inherited atomic.Int32
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if c, err := cs.Claim(name); err == nil {
					won.Add(1)
					if c.Owed() {
						inherited.Add(1)
					}
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, won.Load())
		require.EqualValues(t, 1, inherited.Load(), "round %d", round)
	}
	c := take(t, cs, key("nothing owed"))
	require.True(t, c.Clean(false, func(context.Context) {}))
	for cs.Cleaning(key("nothing owed")) != nil {
		time.Sleep(time.Millisecond)
	}
	require.False(t, take(t, cs, key("nothing owed")).Owed())
	end(nil)
	require.NoError(t, cs.Wait(t.Context()))
}

// The end of the session ends each clean-up, and nothing can be claimed after it.
func TestSessionEndsCleanUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs, _, end := session(t)
		slowly := func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond)
		}
		require.True(t, take(t, cs, key("a")).Clean(false, slowly))
		require.True(t, take(t, cs, key("b")).Clean(true, slowly))
		held := take(t, cs, key("held"))
		waiting, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.ErrorIs(t, cs.Wait(waiting), context.DeadlineExceeded)

		begun := time.Now()
		end(eldest.ErrSessionLost)
		require.NoError(t, cs.Wait(t.Context()))
		require.Equal(t, 100*time.Millisecond, time.Since(begun))
		for _, name := range []string{"a", "held", "new"} {
			_, err := cs.Claim(key(name))
			require.ErrorIs(t, err, eldest.ErrSessionLost)
		}
		require.False(t, held.Clean(true, func(context.Context) { t.Error("called after the end of the session") }))
		require.Nil(t, cs.Cleaning(key("held")))
	})
}

// What is doomed is not held again, by no name of the session and by no later session of
// the lease, until etcd has confirmed that it is gone.
func TestDoomedTokensAreNotHeld(t *testing.T) {
	cs, lease, end := session(t)
	a := take(t, cs, key("a"))
	require.NoError(t, a.Hold(7))
	require.NoError(t, a.Hold(7), "it is its own")
	require.NoError(t, a.Doom(7))
	require.ErrorIs(t, a.Hold(7), claims.ErrDoomed)
	b := take(t, cs, claims.Name{Client: "of another kind", Key: "a"})
	require.ErrorIs(t, b.Hold(7), claims.ErrDoomed)
	b.Release()

	end(eldest.ErrClosed)
	require.ErrorIs(t, a.Doom(8), eldest.ErrClosed, "the keys of a session that has ended are left to the next one")
	cs.End()
	resumed := claims.New(t.Context(), lease)
	c := take(t, resumed, key("a"))
	require.ErrorIs(t, c.Hold(7), claims.ErrDoomed)
	require.NoError(t, c.Hold(8), "the key's next life")
	c.Spend(8)
	require.False(t, take(t, resumed, key("b")).Free(8), "a tenure that is over keeps its key for a while")
	require.NoError(t, c.Doom(8))
	claims.Forget(lease)
	require.NoError(t, take(t, claims.New(t.Context(), lease), key("a")).Hold(8), "another lease of the same ID")
}

// An answer may be older than the confirmation that its key is gone: what was doomed stays
// so while any candidate of the lease waits for one.
//
// Broken by forgetting a token as soon as it is confirmed to be gone.
func TestOldAnswerFindsNoDeadToken(t *testing.T) {
	cs, _, _ := session(t)
	a, waits := take(t, cs, key("a")), take(t, cs, claims.Name{Client: "a wrapper", Key: "a"})
	require.NoError(t, a.Hold(7))
	require.NoError(t, a.Doom(7))
	a.Gone(7)
	require.ErrorIs(t, waits.Hold(7), claims.ErrDoomed)
	require.NoError(t, waits.Hold(9))
	a.Release()
	require.NoError(t, take(t, cs, key("a")).Hold(7), "nothing is kept of what nobody asks for")
}

// A token that is confirmed twice, as by the caller and in the background, counts once: what
// else the lease owes is not forgotten with its last session.
//
// Broken by counting confirmations where tokens are meant.
func TestTokenIsConfirmedOnce(t *testing.T) {
	cs, lease, end := session(t)
	a := take(t, cs, key("a"))
	take(t, cs, key("waits"))
	for _, token := range []eldest.Token{7, 8} {
		require.NoError(t, a.Doom(token))
	}
	a.Gone(7)
	a.Gone(7)
	end(eldest.ErrClosed)
	cs.End()
	require.ErrorIs(t, take(t, claims.New(t.Context(), lease), key("b")).Hold(8), claims.ErrDoomed)
}

// A clean-up that is stopped may not be told that its request has arrived. The next claim
// of the name knows when it holds a later life.
func TestWhatWasDoomedIsForgottenWithTheNextLife(t *testing.T) {
	cs, _, _ := session(t)
	for round := range eldest.Token(3) {
		c := take(t, cs, key("a"))
		require.NoError(t, c.Hold(10+round))
		require.NoError(t, c.Doom(10+round))
		require.True(t, c.Clean(false, func(context.Context) {}))
	}
	last := take(t, cs, key("a"))
	require.ErrorIs(t, last.Hold(12), claims.ErrDoomed)
	require.NoError(t, last.Hold(20))
	b := take(t, cs, key("b"))
	for token := range eldest.Token(3) {
		require.NoError(t, b.Hold(10+token))
	}
}

// What may arrive late does so under the lease: the next session of it looks out for it.
func TestOwedToTheLease(t *testing.T) {
	cs, lease, end := session(t)
	require.True(t, take(t, cs, key("a")).Clean(true, untilStopped))
	end(eldest.ErrClosed)
	cs.End()
	require.NoError(t, cs.Wait(t.Context()))
	resumed := claims.New(t.Context(), lease)
	require.True(t, take(t, resumed, claims.Name{Client: "a new one", Key: "a"}).Owed())
	require.False(t, take(t, resumed, key("b")).Owed())
}

// Two sessions of one lease know the same.
func TestTwoSessionsOfOneLease(t *testing.T) {
	one, lease, end := session(t)
	other := claims.New(t.Context(), lease)
	a, b := take(t, one, key("a")), take(t, other, key("a"))
	require.NoError(t, a.Hold(7))
	require.ErrorIs(t, b.Hold(7), claims.ErrHeld)
	require.NoError(t, a.Doom(7))
	claims.Revoking(lease)
	require.NoError(t, b.Doom(8))
	require.True(t, claims.Revoked(lease))
	end(nil)
	one.End()
	require.True(t, claims.Revoked(lease))
	require.ErrorIs(t, b.Hold(7), claims.ErrDoomed)
}

// A token is one candidate's, by whichever names the session knows its key.
func TestTokenHasOneHolder(t *testing.T) {
	cs, _, _ := session(t)
	a, b := take(t, cs, key("a")), take(t, cs, claims.Name{Client: "a wrapper", Key: "a"})
	require.NoError(t, a.Hold(7))
	require.ErrorIs(t, b.Hold(7), claims.ErrHeld)
	require.ErrorIs(t, b.Hold(7), eldest.ErrCampaigning)
	require.ErrorIs(t, b.Doom(7), claims.ErrHeld)
	require.False(t, b.Free(7))
	require.True(t, a.Free(7))
	require.NoError(t, a.Doom(7))
	require.True(t, b.Free(7))
	require.NoError(t, b.Doom(7), "whoever removes it")
}

// A revocation is remembered until it is answered, and no longer than a request can be on
// its way.
func TestRevocationsAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := rand.Int64(), rand.Int64()
		require.False(t, claims.Revoked(first))
		claims.Revoking(first)
		require.True(t, claims.Revoked(first))
		claims.Refused(first)
		require.False(t, claims.Revoked(first), "the lease lives on")
		claims.Revoking(first)
		claims.Forget(first)
		require.False(t, claims.Revoked(first), "the lease is gone")

		claims.Revoking(first)
		time.Sleep(59 * time.Minute)
		claims.Revoking(second)
		require.True(t, claims.Revoked(first))
		time.Sleep(2 * time.Minute)
		claims.Revoking(rand.Int64())
		require.False(t, claims.Revoked(first))
		require.True(t, claims.Revoked(second))
	})
}

// Clients whose types cannot be compared must not end the process.
func TestComparable(t *testing.T) {
	type parts struct{ List []int }
	require.Nil(t, claims.Comparable(parts{}))
	require.Nil(t, claims.Comparable(nil))
	p := &parts{}
	require.Equal(t, any(p), claims.Comparable(p))
}
