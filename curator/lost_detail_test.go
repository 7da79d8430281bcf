package curator

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestLostLeadershipOfAnError(t *testing.T) {
	err := refusal{election: "e", token: 7, node: "n", untouched: true, why: "because"}.err()
	for _, err := range []error{err, fmt.Errorf("put: %w", err)} {
		lost, ok := LostLeadership(err)
		require.True(t, ok)
		require.EqualValues(t, 7, lost.GetToken())
		require.True(t, lost.GetNothingApplied())
	}
	for _, err := range []error{nil, errors.New("another"), status.Error(codes.Unavailable, "without details")} {
		_, ok := LostLeadership(err)
		require.False(t, ok)
	}
}
