package offspring_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

func TestSuspend(t *testing.T) {
	s := offspring.NewSpawner()
	defer s.Close()
	cmd := exec.Command("sleep", "1000")
	p, err := s.Launch(cmd, func([]byte) {}, func(*offspring.Process) {})
	require.NoError(t, err)
	stopped := func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
		require.NoError(t, err)
		return strings.Contains(string(stat), ") T ")
	}
	require.NoError(t, p.Suspend())
	require.True(t, stopped())
	require.NoError(t, p.Resume())
	require.Eventually(t, func() bool { return !stopped() }, 20*time.Second, time.Millisecond)
	require.NoError(t, p.Suspend())
	p.End()
	code, _ := p.Result()
	require.Equal(t, -1, code)
}
