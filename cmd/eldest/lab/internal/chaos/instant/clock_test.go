package instant

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asOther in the environment has this test binary say what time it is, and nothing else.
const asOther = "ELDEST_INSTANT_TEST_ZERO"

func TestMain(m *testing.M) {
	if zero := os.Getenv(asOther); zero != "" {
		n, err := strconv.ParseInt(zero, 10, 64)
		if err != nil {
			os.Exit(1)
		}
		_ = json.NewEncoder(os.Stdout).Encode(Clock{Zero: time.Duration(n)}.Now())
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// What another process reads lies between two readings of this one.
func TestProcessesReadTheSame(t *testing.T) {
	c := Begin()
	before := c.Now()
	require.Positive(t, before)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asOther+"="+strconv.FormatInt(int64(c.Zero), 10))
	out, err := cmd.Output()
	after := c.Now()
	require.NoError(t, err)
	var there time.Duration
	require.NoError(t, json.Unmarshal(out, &there))
	require.Greater(t, there, before)
	require.Less(t, there, after)
}
