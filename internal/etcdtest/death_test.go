package etcdtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// childEnv makes this test binary the process whose death is tested.
const childEnv = "ELDEST_ETCDTEST_CHILD"

// left is the child's report of what must not outlive it.
type left struct {
	Pids []int  `json:"pids"`
	Dir  string `json:"dir"`
}

// When a test process is killed, its members, one of which is stopped, and their data are removed.
func TestNothingOutlivesTheTest(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		beKilled()
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI must have /proc: without it only the end of stdin ends a member")
		}
		t.Skip("SKIPPED: no /proc on this system to look for processes in")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	child := etcdtest.Run(t, cmd)
	var l left
	require.NoError(t, json.Unmarshal([]byte(child.Line(`^\{.*`)[0]), &l))
	require.Len(t, l.Pids, 3)
	require.DirExists(t, l.Dir)

	child.Signal(syscall.SIGKILL)
	require.NotZero(t, child.End())
	for _, pid := range l.Pids {
		require.Eventually(t, func() bool { return !alive(pid) }, etcdtest.Patience, time.Millisecond, "member %d", pid)
	}
	require.Eventually(t, func() bool {
		_, err := os.Stat(l.Dir)
		return errors.Is(err, fs.ErrNotExist)
	}, etcdtest.Patience, time.Millisecond, "the data is left")
}

// beKilled starts a cluster, stops one member, reports both and waits until it is killed.
func beKilled() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := etcdtest.New(ctx, etcdtest.Config{Members: 3})
	if err == nil {
		err = c.Member(1).Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // whoever is to be killed defers nothing that matters
	}
	l := left{Dir: c.Dir()}
	for i := range c.Size() {
		l.Pids = append(l.Pids, c.Member(i).Pid())
	}
	_ = json.NewEncoder(os.Stdout).Encode(l)
	select {} // until killed
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
