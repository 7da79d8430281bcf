package lease_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// What was left stays noted, however often its name is claimed and tended, until the
// session ends; of several the newest, for each name by itself.
func TestWhatWasLeftIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.grant, s.renew, s.revoke = []reply{ok(10)}, []reply{ok(10)}, []reply{ok(0)}
		session := open(t, s.config(0))
		require.Zero(t, session.Left("a"))
		session.Leave("a", 7)
		session.Leave("a", 9)
		session.Leave("a", 0) // any life: none is known
		session.Leave("b", 8)
		_, err := session.Claim(t.Context(), "a")
		require.NoError(t, err)
		session.Release("a")
		require.EqualValues(t, 9, session.Left("a"))
		require.EqualValues(t, 8, session.Left("b"))
		require.NoError(t, session.Close(t.Context()))
	})
}
