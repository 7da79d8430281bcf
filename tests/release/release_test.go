package release

import (
	"debug/buildinfo"
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

const (
	ours    = "github.com/eldest-io/eldest"
	version = "v0.999.0" // it is never published
)

// modules are the published ones, each after those that it requires.
var modules = []string{"", "metrics", "traces", "cmd/eldest"}

// repository makes a repository of the work tree, including uncommitted files that Git does not
// ignore, in which the changelog has a section for the version. Its origin is empty.
func repository(t *testing.T) place {
	t.Helper()
	here, err := filepath.Abs("../..")
	require.NoError(t, err)
	repo := place{t.TempDir(), []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}}
	origin := t.TempDir()
	repo.run(t, "git", "init", "-q", "--bare", origin)
	repo.run(t, "git", "init", "-q")
	repo.run(t, "git", "remote", "add", "origin", origin)
	repo.run(t, "git", "--git-dir", ".git", "--work-tree", here, "add", "-A")
	repo.run(t, "git", "commit", "-q", "-m", "the work tree")
	repo.run(t, "git", "reset", "-q", "--hard")
	changelog := filepath.Join(repo.dir, "CHANGELOG.md")
	text, err := os.ReadFile(changelog)
	require.NoError(t, err)
	section := "## [" + version[1:] + "]\n\nA rehearsal.\n\n## [0.998.0]\n\n## "
	require.NoError(t, os.WriteFile(changelog, []byte(strings.Replace(string(text), "## ", section, 1)), 0o600))
	repo.run(t, "git", "commit", "-q", "-a", "-m", "the changelog")
	return repo
}

// state is what a release may change in a repository and at its origin.
func (p place) state(t *testing.T) string {
	t.Helper()
	return p.run(t, "git", "for-each-ref") + p.run(t, "git", "status", "--porcelain", "--branch") + p.run(t, "git", "ls-remote", "origin")
}

// refused asks for what cannot be released.
func refused(t *testing.T, repo place) {
	refuse := func(says string, args ...string) {
		t.Helper()
		out, err := repo.try(t, ".ci/release", args...)
		require.Error(t, err)
		require.Contains(t, out, says)
	}
	before := repo.state(t)
	for _, v := range []string{"0.999.0", "v0.999", "v0.0999.0", "v0.999.0+linux", "v0.999.0-", "v0.999.0-rc.01", "latest"} {
		refuse(v+" is not a semantic version", v)
	}
	refuse("needs module paths that end in /v2", "v2.0.0")
	refuse("no section [0.997.0]", "v0.997.0")
	refuse("no section [0.998.0], or an empty one", "v0.998.0")
	refuse("no section [0.999.0-rc.1]", "v0.999.0-rc.1")
	refuse("Usage: .ci/release")
	refuse("Usage: .ci/release", version, version)
	refuse("Usage: .ci/release", version, "--proxy")
	refuse("unknown option --push", "--push", version)
	require.Contains(t, repo.run(t, ".ci/release", "--help"), "Usage: .ci/release")

	file := filepath.Join(repo.dir, "new")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	refuse("the work tree has changes", version)
	require.NoError(t, os.Remove(file))

	repo.run(t, "git", "tag", "traces/"+version)
	refuse(version+" exists: traces/"+version, version)
	repo.run(t, "git", "push", "-q", "origin", "traces/"+version)
	repo.run(t, "git", "tag", "-d", "traces/"+version)
	refuse(version+" exists", version)
	repo.run(t, "git", "push", "-q", "origin", ":traces/"+version)

	origin := repo.run(t, "git", "remote", "get-url", "origin")
	repo.run(t, "git", "remote", "set-url", "origin", "/nowhere")
	refuse("the tags of origin cannot be listed", version)
	repo.run(t, "git", "remote", "set-url", "origin", origin)
	require.Equal(t, before, repo.state(t))
}

// dryRun shows the release, and changes nothing.
func dryRun(t *testing.T, repo place) {
	before := repo.state(t)
	out := repo.run(t, ".ci/release", "--dry-run", version)
	require.Contains(t, out, "-replace "+ours+" => ../..")
	require.Contains(t, out, "git push --atomic origin "+version)
	require.Equal(t, before, repo.state(t))
}

// copied returns a copy of a repository. Its origin is the same one.
func (p place) copied(t *testing.T) place {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	p.run(t, "cp", "-R", p.dir, dir)
	return place{dir, p.env}
}

func TestRelease(t *testing.T) {
	repo, proxy := repository(t), t.TempDir()
	t.Run("refused", func(t *testing.T) { refused(t, repo) })
	untagged := repo.copied(t)
	head, before := repo.run(t, "git", "rev-parse", "HEAD"), repo.run(t, "git", "status", "--porcelain", "--branch")
	out := repo.run(t, ".ci/release", "--proxy", proxy, version)
	var tags []string
	for _, module := range modules {
		tag := strings.TrimPrefix(module+"/"+version, "/")
		tags = append(tags, tag)
		require.Equal(t, head, repo.run(t, "git", "rev-parse", tag+"^{commit}^"), "the release is one commit after HEAD")
	}
	require.Contains(t, out, "git push --atomic origin "+strings.Join(tags, " "))
	require.ElementsMatch(t, tags, strings.Fields(repo.run(t, "git", "tag")))
	require.Regexp(t, `^((cmd/eldest|metrics|traces)/go\.(mod|sum)\s*)+$`, repo.run(t, "git", "diff", "--name-only", "HEAD", version))
	require.Equal(t, head, repo.run(t, "git", "rev-parse", "HEAD"))
	require.Equal(t, before, repo.run(t, "git", "status", "--porcelain", "--branch"))
	require.Empty(t, repo.run(t, "git", "ls-remote", "origin"), "nothing is pushed")

	// GOENV is off because a go command with a GONOPROXY, even "none", looks into its module cache
	// first: there it finds the library, and then no module below it.
	// GOSUMDB is off to avoid the network: the content of the usual module cache was once compared
	// with a go.sum.
	usual := strings.Fields(repo.run(t, "go", "env", "GOMODCACHE", "GOPROXY", "GOCACHE"))
	bin := t.TempDir()
	stranger := []string{
		"GOPROXY=file://" + proxy + ",file://" + usual[0] + "/cache/download," + usual[1], "GOCACHE=" + usual[2], "GOMODCACHE=" + others(t, usual[0]),
		"GOENV=off", "GOPRIVATE=", "GONOPROXY=", "GOSUMDB=off", "GOBIN=" + bin, "GOWORK=off", "GOTOOLCHAIN=local",
		"GOFLAGS=-mod=mod -modcacherw -trimpath -ldflags=-w", // debug information takes most of the linker's time
	}

	t.Run("modules", func(t *testing.T) {
		for _, module := range modules {
			file := filepath.Join(proxy, ours, module, "@v", version+".mod")
			var mod struct {
				Require []struct{ Path, Version string }
				Replace []any
				Exclude []any
			}
			require.NoError(t, json.Unmarshal([]byte(repo.run(t, "go", "mod", "edit", "-json", file)), &mod))
			require.Empty(t, mod.Replace, file)
			require.Empty(t, mod.Exclude, file)
			for _, r := range mod.Require {
				if strings.HasPrefix(r.Path+"/", ours+"/") {
					require.Equal(t, version, r.Version, "%s requires %s", file, r.Path)
				}
			}
		}
	})

	eldest := filepath.Join(bin, "eldest")
	source := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(source, []byte(gettingStarted(t, repo)), 0o600))
	elector, start, observed := place{t.TempDir(), stranger}, place{t.TempDir(), stranger}, place{t.TempDir(), stranger}
	beside(t, "built", map[string]func(t *testing.T){
		"command": func(t *testing.T) {
			p := place{t.TempDir(), stranger}
			p.run(t, "go", "install", ours+"/cmd/eldest@"+version)
			released(t, eldest, "", "metrics")
			require.Contains(t, p.run(t, eldest, "--version"), version+" (etcd v3.")
		},
		"library": func(t *testing.T) {
			elector.program(t, filepath.Join(repo.dir, "examples/elector/main.go"), "")
			released(t, filepath.Join(elector.dir, "program"), "")
			all := strings.Split(elector.run(t, "go", "list", "-m", "all"), "\n")
			heavy := func(m string) bool { return strings.HasPrefix(m, ours) || strings.Contains(m, "etcd/server") }
			require.Equal(t, ours+" "+version, strings.Join(slices.DeleteFunc(all, func(m string) bool { return !heavy(m) }), "\n"))
		},
		"getting started": func(t *testing.T) { start.program(t, source, "") },
		"observability": func(t *testing.T) {
			observed.program(t, "testdata/observed/main.go", "metrics", "traces")
			released(t, filepath.Join(observed.dir, "program"), "", "metrics", "traces")
			// All packages compile, also those that no program of the test imports. None is linked.
			observed.run(t, "go", "list", "-export", "-f", "{{.Export}}", ours+"/...")
		},
		"tidy": func(t *testing.T) {
			tagged := place{filepath.Join(t.TempDir(), "tagged"), stranger}
			repo.run(t, "git", "worktree", "add", "-q", "--detach", tagged.dir, version)
			for _, module := range modules {
				place{filepath.Join(tagged.dir, module), append(slices.Clone(stranger), "GOFLAGS=-modcacherw")}.run(t, "go", "mod", "tidy", "-diff")
			}
		},
		"dry run": func(t *testing.T) {
			if !etcdtest.All() && etcdtest.Draw(t).IntN(4) > 0 {
				t.Skip("not drawn: it does all that a release does, except the tags")
			}
			dryRun(t, untagged)
		},
	})

	anywhere := place{t.TempDir(), nil}
	etcd := anywhere.start(t, eldest, "etcd", "--json", "--data-dir", filepath.Join(anywhere.dir, "etcd"))
	var cluster struct{ Endpoints []string }
	require.NoError(t, json.Unmarshal([]byte(etcd.Line(".*endpoints.*")[0]), &cluster))
	endpoint := cluster.Endpoints[0]
	beside(t, "run", map[string]func(t *testing.T){
		"elector": func(t *testing.T) {
			// The program leads, and then the command.
			leader := elector.start(t, "./program", "--node", "node-1", "--endpoints", endpoint)
			leader.Line("node-1 leads with token")
			successor := anywhere.start(t, eldest, "campaign", "counting", "node-2", "--endpoints", endpoint, "--json")
			successor.Line(`"waiting"`)
			interrupt(t, leader)
			successor.Line(`"leader"`)
			require.Contains(t, anywhere.run(t, eldest, "leader", "counting", "--endpoints", endpoint), "node-2")
			interrupt(t, successor)
		},
		"started": func(t *testing.T) {
			p := place{start.dir, append(slices.Clone(stranger), "ELDEST_ENDPOINTS="+endpoint)}
			first := p.start(t, "./program", "a")
			first.Line("^leading with token")
			second := p.start(t, "./program", "b")
			require.Eventually(t, func() bool {
				return strings.Contains(anywhere.run(t, eldest, "list", "hello", "--endpoints", endpoint), "node b")
			}, time.Minute, 100*time.Millisecond)
			interrupt(t, first)
			first.Line("^no longer leading$")
			second.Line("^leading with token")
			interrupt(t, second)
		},
		"observed": func(t *testing.T) {
			require.Equal(t, "the collector shows the token: true\nspan eldest.campaign\nspan eldest.tenure", observed.run(t, "./program", endpoint))
		},
	})
	interrupt(t, etcd)
}

// gettingStarted returns the program of the page for beginners.
func gettingStarted(t *testing.T, repo place) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repo.dir, "docs/getting-started.md"))
	require.NoError(t, err)
	_, source, found := strings.Cut(string(page), "\n```go\npackage main\n")
	require.True(t, found, "the page has no program")
	source, _, _ = strings.Cut(source, "\n```\n")
	return "package main\n" + source
}

// beside runs tests at the same time, and starts them in the order of their names: the two that take
// longest are first. All of them must pass.
func beside(t *testing.T, name string, tests map[string]func(t *testing.T)) {
	t.Helper()
	require.True(t, t.Run(name, func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(tests)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tests[name](t)
			})
		}
	}))
}

// others returns a module cache that has the modules of the usual one, except ours: its directories are
// links. To download and extract all modules again would take most of the time of the commands.
func others(t *testing.T, usual string) string {
	t.Helper()
	cache := t.TempDir()
	host, owner := path.Split(path.Dir(ours))
	for _, dir := range []string{".", host, "cache/download", path.Join("cache/download", host)} {
		require.NoError(t, os.MkdirAll(filepath.Join(cache, dir), 0o755))
		entries, err := os.ReadDir(filepath.Join(usual, dir))
		require.NoError(t, err)
		for _, entry := range entries {
			switch entry.Name() {
			case path.Clean(host), owner, "cache": // the first and the last are made above
			default:
				require.NoError(t, os.Symlink(filepath.Join(usual, dir, entry.Name()), filepath.Join(cache, dir, entry.Name())))
			}
		}
	}
	return cache
}

// program makes a module of one file, gets our modules for it, and builds it.
func (p place) program(t *testing.T, file string, needs ...string) {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	p.run(t, "go", "mod", "init", "example.com/program")
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "main.go"), source, 0o600))
	for _, module := range needs {
		p.run(t, "go", "get", strings.TrimSuffix(ours+"/"+module, "/")+"@"+version)
	}
	p.run(t, "go", "build", "-o", "program", ".")
}

// released requires that a binary was built from the release: it contains exactly these modules of
// ours, at one version.
func released(t *testing.T, binary string, want ...string) {
	t.Helper()
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	var has []string
	for _, module := range append(info.Deps, &info.Main) {
		if name, found := strings.CutPrefix(module.Path+"/", ours+"/"); found {
			require.Equal(t, version, module.Version, module.Path)
			require.Nil(t, module.Replace, module.Path)
			if module != &info.Main {
				has = append(has, strings.TrimSuffix(name, "/"))
			}
		}
	}
	require.ElementsMatch(t, want, has)
}
