package offspring_test

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCodes(t *testing.T) {
	s := offspring.NewSpawner()
	defer s.Close()
	run := func(args ...string) int {
		cmd := exec.Command("sh", args...)
		require.NoError(t, s.Start(cmd))
		return offspring.Code(cmd.Wait())
	}
	require.Equal(t, 0, run("-c", "exit 0"))
	require.Equal(t, 3, run("-c", "exit 3"))
	require.Equal(t, -1, run("-c", "kill -KILL $$"))
	require.Error(t, s.Start(exec.Command("/nonexistent")))
	require.Equal(t, 0, run("-c", "exit 0"))
}

func TestLaunch(t *testing.T) {
	s := offspring.NewSpawner()
	defer s.Close()
	var said []string
	cmd := exec.Command("sh", "-c", "echo one; echo two; echo sorry >&2; read x")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	spoke := make(chan struct{}, 10)
	p, err := s.Launch(cmd, func(line []byte) { said = append(said, string(line)); spoke <- struct{}{} }, func(p *offspring.Process) {
		code, complaint := p.Result()
		said = append(said, fmt.Sprint(code, " ", complaint))
	})
	require.NoError(t, err)
	<-spoke
	<-spoke
	require.False(t, p.Gone())
	require.NoError(t, stdin.Close())
	code, complaint := p.Result()
	require.Equal(t, 1, code)
	require.Equal(t, "sorry", complaint)
	p.End()
	require.True(t, p.Gone())
	require.Equal(t, []string{"one", "two", "1 sorry"}, said)

	p, err = s.Launch(exec.Command("sleep", "1000"), func([]byte) {}, func(*offspring.Process) {})
	require.NoError(t, err)
	p.End()
	code, _ = p.Result()
	require.Equal(t, -1, code)
	_, err = s.Launch(exec.Command("/nonexistent"), nil, nil)
	require.Error(t, err)
}

func TestEnv(t *testing.T) {
	require.Equal(t, []string{"PATH=/bin"}, offspring.Env([]string{"ELDEST_USER=x", "PATH=/bin", "ETCDCTL_ENDPOINTS=y"}))
	require.Equal(t, "b", offspring.LastLine("a\nb\n"))
}
