package cli

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is not recorded in the executable is not invented.
func TestBuild(t *testing.T) {
	unknown := Build{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	known := unknown
	known.Version, known.Revision, known.Modified, known.EtcdClient, known.EtcdServer = "v1.2.3", "5c56b61", true, "v3.7.3", "v3.7.4"
	require.Equal(t, unknown, buildOf(nil))
	require.Equal(t, unknown, buildOf(&debug.BuildInfo{}))
	require.Equal(t, unknown, buildOf(&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}))
	require.Equal(t, known, buildOf(&debug.BuildInfo{
		Main:     debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "5c56b61"}, {Key: "vcs.modified", Value: "true"}},
		Deps:     []*debug.Module{{Path: "go.etcd.io/etcd/client/v3", Version: "v3.7.3"}, {Path: "go.etcd.io/etcd/server/v3", Version: "v3.7.4"}},
	}))
}
