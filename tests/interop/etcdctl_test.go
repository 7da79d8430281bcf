package interop

import (
	"encoding/json"
	"fmt"
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

// process is a running etcdctl elect.
type process struct{ *etcdtest.Program }

// elect starts etcdctl elect with the given arguments.
func elect(t *testing.T, endpoint string, args ...string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"--endpoints", endpoint, "--write-out", "json", "elect"}, args...)...)
	cmd.Env = append(os.Environ(), etcdctlEnv+"=1")
	return process{etcdtest.Run(t, cmd)}
}

// printed waits for the next leader that etcdctl prints; nil if it has ended.
func (p process) printed() *mvccpb.KeyValue {
	for line := range p.Lines {
		var answer etcdserverpb.RangeResponse
		if json.Unmarshal([]byte(line), &answer) == nil && len(answer.Kvs) > 0 {
			return answer.Kvs[0]
		}
	}
	return nil
}

// stop interrupts etcdctl, as Ctrl-C does, and returns how it ended.
func (p process) stop() error {
	p.Signal(syscall.SIGINT)
	if code := p.End(); code != 0 {
		return fmt.Errorf("exit code %d: %s", code, p.Said())
	}
	return nil
}

// etcdctl joins with etcdctl elect NAME VALUE.
func etcdctl(t *testing.T, s *stage, value string) *contender {
	t.Helper()
	p := elect(t, s.endpoint, s.name, value)
	c := &contender{key: s.registered(t, value)}
	c.won = etcdtest.Go(func() win {
		kv := p.printed() // nil if it ended without a win
		return win{key: string(kv.GetKey()), token: eldest.Token(kv.GetCreateRevision())}
	})
	c.resign = p.stop
	c.leave = func() {
		require.ErrorContains(t, p.stop(), "context canceled", "it has not won")
		// If it is interrupted before the answer to its registration has come, it leaves its key there.
		require.NoError(t, etcdtest.Err(s.cli.Delete(etcdtest.Context(t), c.key)))
	}
	c.die = func() {
		p.Signal(syscall.SIGKILL)
		p.End()
	}
	return c
}
