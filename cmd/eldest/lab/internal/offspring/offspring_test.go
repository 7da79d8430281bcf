package offspring_test

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a process writes and how it ends is reported, in order; a launched process ends with the
// spawner at the latest.
func TestLaunch(t *testing.T) {
	s := offspring.NewSpawner()
	run := func(script string) []string {
		var said []string
		p, err := s.Launch(exec.Command("sh", "-c", script), func(line []byte) { said = append(said, string(line)) }, func(p *offspring.Process) {
			code, complaint := p.Result()
			said = append(said, fmt.Sprint(code, " ", complaint))
		})
		require.NoError(t, err)
		p.Result()
		p.End()
		require.True(t, p.Gone())
		return said
	}
	require.Equal(t, []string{"one", "two", "3 sorry"}, run("echo one; echo two; echo so >&2; echo sorry >&2; exit 3"))
	require.Equal(t, []string{"0 "}, run("exit 0"))
	require.Equal(t, []string{"-1 "}, run("kill -KILL $$"))
	_, err := s.Launch(exec.Command("/nonexistent"), nil, nil)
	require.Error(t, err)

	p, err := s.Launch(exec.Command("sleep", "1000"), func([]byte) {}, func(*offspring.Process) {})
	require.NoError(t, err)
	require.False(t, p.Gone())
	require.NoError(t, p.Suspend())
	stopped := func() bool { still, err := etcdtest.Stopped(p.Pid()); return err == nil && still }
	require.True(t, stopped())
	require.NoError(t, p.Resume())
	require.Eventually(t, func() bool { return !stopped() }, 20*time.Second, time.Millisecond)
	require.NoError(t, p.Suspend())
	s.Close()
	code, _ := p.Result()
	require.Equal(t, -1, code)
}

func TestEnv(t *testing.T) {
	require.Equal(t, []string{"PATH=/bin"}, offspring.Env([]string{"ELDEST_USER=x", "PATH=/bin", "ETCDCTL_ENDPOINTS=y"}))
}
