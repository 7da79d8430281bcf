package lent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/lent"
)

// There is one thing for each key while it is in use. Return reports true for the last user, and
// the next Take makes a new thing.
func TestThings(t *testing.T) {
	var things lent.Things[string, int]
	made := 0
	build := func() int { made++; return made }
	require.Equal(t, 1, things.Take("a", build))
	require.Equal(t, 1, things.Take("a", build))
	require.Equal(t, 2, things.Take("b", build))
	require.False(t, things.Return("a"))
	require.True(t, things.Return("a"))
	require.Equal(t, 3, things.Take("a", build))
	require.True(t, things.Return("a"))
	require.True(t, things.Return("b"))
}
