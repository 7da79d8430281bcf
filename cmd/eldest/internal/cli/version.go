package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build is what an executable knows about how it was built.
type Build struct {
	// Version is the version of the module; "devel" where none was recorded.
	Version string `json:"version"`
	// Revision is the commit and Modified whether the sources were changed since; "" and false where
	// the executable was not built in a repository.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	// EtcdClient and EtcdServer are the versions of the etcd modules; "" where they were not recorded.
	EtcdClient string `json:"etcd_client,omitempty"`
	EtcdServer string `json:"etcd_server,omitempty"`
}

// ReadBuild returns how this executable was built.
func ReadBuild() Build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info)
}

// buildOf takes what is known from info, which may be nil.
func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
		return b
	}
	if v := strings.Trim(info.Main.Version, "()"); v != "" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, module := range info.Deps {
		switch module.Path {
		case "go.etcd.io/etcd/client/v3":
			b.EtcdClient = module.Version
		case "go.etcd.io/etcd/server/v3":
			b.EtcdServer = module.Version
		}
	}
	return b
}

// Version returns the version of eldest and that of its etcd.
func Version() string {
	b := ReadBuild()
	if b.EtcdServer == "" {
		b.EtcdServer = "unknown"
	}
	return fmt.Sprintf("%s (etcd %s)", b.Version, b.EtcdServer)
}
