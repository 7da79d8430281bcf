package election_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Names and keys from outside cannot write to a terminal.
func TestErrorsQuoteNames(t *testing.T) {
	s := newStage(t)
	s.Election = "\x1b[31mred\n\xff"
	c := s.candidate("v")
	_, err := c.Await(s.Ctx)
	require.NotContains(t, err.Error(), "\x1b")
	require.NotContains(t, err.Error(), "\n")
	require.NoError(t, s.lead(c).Resign(s.Ctx), "but they are names like any other")
}
