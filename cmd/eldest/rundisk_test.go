//go:build linux

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// However it ends, nothing is written to disk: not where it was started, not at home, not
// where temporary files go.
func TestRunLeavesNothingOnDisk(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	for name, end := range map[string]func(*running){
		"killed": func(r *running) { r.Signal(syscall.SIGKILL) },
		"told":   func(r *running) { r.Signal(syscall.SIGTERM) },
		"keeper killed": func(r *running) {
			for _, keeper := range clitest.Children(r.Cmd.Process.Pid) {
				_ = handle(r.T, keeper).Kill()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			here := t.TempDir()
			etcd := etcd.of(t).changed(func(cmd *exec.Cmd) { cmd.Dir = here })
			for _, variable := range []string{"TMPDIR", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
				etcd = etcd.with(variable + "=" + here)
			}
			r := etcd.run("svc "+name, "--ttl", "60s", "--http", "0", "--on-win", "true", "--health", "true", "--", "sleep", "1000")
			r.pid()
			end(r)
			r.Over()
			newDiary(t).nobody("svc " + name)
			left, err := os.ReadDir(here)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
