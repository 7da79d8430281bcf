package etcdtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// The members run the etcd that ELDEST_ETCD names, as a process that is stopped, killed and restarted
// with them.
func TestAnotherEtcd(t *testing.T) {
	c := etcdtest.Start(t, etcdtest.Config{Members: 3})
	ctx := etcdtest.Context(t)
	// A new cluster has no version until its leader has asked all members for theirs.
	var got string
	etcdtest.Eventually(t, func() bool {
		v, err := c.Version(ctx)
		require.NoError(t, err)
		dot := strings.LastIndex(v, ".")
		got = v[:max(dot, 0)]
		return dot >= 0
	}, "the cluster's version")
	other := os.Getenv("ELDEST_ETCD")
	if other == "" {
		require.Zero(t, c.Member(0).Child())
		return
	}
	out, err := exec.Command(other, "--version").Output()
	require.NoError(t, err)
	version := strings.Fields(string(out))[2]
	require.True(t, strings.HasPrefix(version, got+"."), "the cluster has version %s, %s is %s", got, other, version)

	// A process that has been killed has no etcd that goes on.
	child := c.Member(0).Child()
	require.True(t, alive(child))
	require.NoError(t, c.Member(0).Stop())
	stopped, err := etcdtest.Stopped(child)
	require.NoError(t, err)
	require.True(t, stopped)
	require.NoError(t, c.Member(0).Kill())
	require.False(t, alive(child))
	require.NoError(t, c.Member(0).Restart(ctx))
	require.NotEqual(t, child, c.Member(0).Child())
}
