package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// process is a running etcdctl elect. It is killed at the end of the test, if it still runs.
type process struct {
	cmd *exec.Cmd
	// printed receives the leaders that etcdctl prints, and is closed at the end of its output.
	printed <-chan *mvccpb.KeyValue
	ended   <-chan error
	stderr  bytes.Buffer // complete when the process has ended
}

// elect starts etcdctl elect with the given arguments.
func elect(t *testing.T, endpoint string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], append([]string{"--endpoints", endpoint, "--write-out", "json", "elect"}, args...)...)}
	p.cmd.Env = append(os.Environ(), etcdctlEnv+"=1")
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	printed, done := make(chan *mvccpb.KeyValue, 1024), make(chan struct{})
	p.printed = printed
	p.ended = etcdtest.Go(func() error {
		defer close(done)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var answer etcdserverpb.RangeResponse
			if json.Unmarshal(lines.Bytes(), &answer) == nil && len(answer.Kvs) > 0 {
				printed <- answer.Kvs[0]
			}
		}
		err := p.cmd.Wait()
		close(printed)
		return err
	})
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = stdin.Close()
		<-done
	})
	return p
}

// stop interrupts etcdctl, as Ctrl-C does, and returns how it ended.
func (p *process) stop(t *testing.T) error {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
	return etcdtest.Take(t, p.ended, "the end of etcdctl")
}

// etcdctl joins with etcdctl elect NAME VALUE.
func etcdctl(t *testing.T, s *stage, value string) *contender {
	t.Helper()
	p := elect(t, s.endpoint, s.name, value)
	c := &contender{key: s.registered(t, value)}
	c.won = etcdtest.Go(func() win {
		kv := <-p.printed // nil if it ended without a win
		return win{key: string(kv.GetKey()), token: eldest.Token(kv.GetCreateRevision())}
	})
	c.resign = func() error { return p.stop(t) }
	c.leave = func() {
		require.Error(t, p.stop(t), "it has not won")
		require.Contains(t, p.stderr.String(), "context canceled")
	}
	c.die = func() {
		require.NoError(t, p.cmd.Process.Kill())
		require.Error(t, etcdtest.Take(t, p.ended, "the end of etcdctl"))
	}
	return c
}
