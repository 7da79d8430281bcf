package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// server is a version of etcd's server.
type server struct {
	name    string // major and minor version
	release string // the version on the module proxy; "" is Debian's package
}

// servers are the versions that are tested, the oldest first.
var servers = []server{
	{name: "3.4"},
	{name: "3.5", release: "v3.5.35"},
	{name: "3.6", release: "v3.6.16"},
	{name: "3.7", release: "v3.7.3"},
	{name: "3.8", release: "v3.8.0-alpha.0"},
}

// siblings are the modules of etcd besides the server that a version consists of.
var siblings = map[string][]string{
	"3.5": {"api/v3", "client/pkg/v3", "client/v3", "pkg/v3", "raft/v3"},
	"":    {"api/v3", "client/pkg/v3", "client/v3", "pkg/v3"}, // raft has versions of its own
}

// named returns the server with a name.
func named(name string) (server, error) {
	for _, s := range servers {
		if s.name == name {
			return s, nil
		}
	}
	return server{}, fmt.Errorf("no version %q", name)
}

// cache is the directory in which all binaries are kept.
func cache() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "eldest-etcd")
	return dir, os.MkdirAll(dir, 0o755)
}

// binary returns the path of the server's binary, which it builds if the cache does not have it.
func (s server) binary(ctx context.Context) (string, error) {
	if s.release == "" {
		return s.debian()
	}
	dir, err := cache()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, s.release+"-"+runtime.Version())
	path := filepath.Join(dir, "etcd")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := s.build(ctx, dir, path); err != nil {
		return "", fmt.Errorf("building etcd %s: %w", s.release, err)
	}
	return path, nil
}

// debian finds the server of Debian's package.
func (s server) debian() (string, error) {
	const path = "/usr/bin/etcd"
	out, err := exec.Command(path, "--version").Output()
	if errors.Is(err, os.ErrNotExist) {
		return "", errors.New("etcd is not installed: apt-get install --no-install-recommends etcd-server")
	}
	if err == nil && !strings.HasPrefix(string(out), "etcd Version: "+s.name+".") {
		err = fmt.Errorf("%s is not %s: %s", path, s.name, bytes.TrimSpace(out))
	}
	return path, err
}

// build makes the throw-away module in dir and builds the server's main package. It builds into another
// name first, so that a build that is interrupted leaves no binary.
func (s server) build(ctx context.Context, dir, path string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // it is in a cache
	modules := siblings[s.name]
	if modules == nil {
		modules = siblings[""]
	}
	get := []string{"get", "go.etcd.io/etcd/server/v3@" + s.release}
	for _, m := range modules {
		get = append(get, "go.etcd.io/etcd/"+m+"@"+s.release)
	}
	for _, args := range [][]string{
		{"mod", "init", "eldest.invalid/etcd"}, get, {"build", "-o", "etcd", "go.etcd.io/etcd/server/v3"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
		}
	}
	return os.Rename(filepath.Join(work, "etcd"), path)
}

// version is what the binary says about itself.
func version(binary string) (string, error) {
	out, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "etcd Version: "), nil
}
