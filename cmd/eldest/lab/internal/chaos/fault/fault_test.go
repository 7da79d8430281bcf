package fault

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// That each takes effect is tested where there is a cluster, in package chaos.
func TestEachFaultHasAStriker(t *testing.T) {
	for _, f := range plan.Names() {
		require.Contains(t, strikers, f)
	}
	require.Len(t, strikers, len(plan.Names()))
	_, err := Strike(t.Context(), &Field{Patience: time.Minute}, plan.Strike{Fault: "earthquake"})
	require.ErrorContains(t, err, "earthquake")
}

// A registration has the candidate's name for a value; a write has it in one.
func TestRegistrationIsNoWrite(t *testing.T) {
	match := registrationOf("p3.2")
	require.True(t, match([]byte("\x0achaos/5f\x12\x04p3.2\x18\x07")))
	require.False(t, match([]byte("\x0achaos-data\x12\x0a17 p3.2-9")))
	require.False(t, match([]byte("\x0achaos-data")))
}
