//go:build linux

package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// However it ends, nothing is written to disk: not where it was started, not at home, not
// where temporary files go.
func TestRunLeavesNothingOnDisk(t *testing.T) {
	startEtcdProcess(t, "0")
	for name, end := range map[string]func(*running){
		"killed": func(r *running) { r.signal(syscall.SIGKILL) },
		"told":   func(r *running) { r.signal(syscall.SIGTERM) },
		"keeper killed": func(r *running) {
			for _, keeper := range childrenOfProcess(r.cmd.Process.Pid) {
				_ = handle(r.t, keeper).Kill()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			here := t.TempDir()
			for _, variable := range []string{"TMPDIR", "HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
				t.Setenv(variable, here)
			}
			t.Chdir(here)
			r := startRun(t, "svc "+name, "--ttl", "60s", "--http", "0", "--on-win", "true", "--health", "true", "--", "sleep", "1000")
			r.pid()
			end(r)
			r.over()
			newDiary(t).nobody("svc " + name)
			left, err := os.ReadDir(here)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
