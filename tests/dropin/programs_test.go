package dropin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

const (
	theirImport = `"go.etcd.io/etcd/client/v3/concurrency"`
	ourImport   = `"github.com/eldest-io/eldest/compat/concurrency"`
)

// said is what each program must print, with either package.
var said = map[string]string{
	"cron": "12 runs\n-runs/000 version 1\n-runs/001 version 1\n-runs/002 version 1\n-runs/003 version 1\n-runs/004 version 1\n-runs/005 version 1\n" +
		"-runs/006 version 1\n-runs/007 version 1\n-runs/008 version 1\n-runs/009 version 1\n-runs/010 version 1\n-runs/011 version 1\n",
	"counter": "-count 60\n-from 940\n-to 60\n",
	"failover": "clients go to 10.0.0.1:80\nclients go to 10.0.0.1:8080\nclients go to 10.0.0.2:80\n" +
		"the leader is 10.0.0.2:80 true\nthen: election: no leader\n",
	"resume": "leads with its own key: true\ntoken is the header's revision: true\nthe same tenure: true true\nversion 3 written 3 times\nresigned: true\n",
	"service": "at first: election: no leader\nthen: one, again\nat last: the other\nwithout its lease: election: no leader\n" +
		"locked and unlocked: true\nwithout a lease: true\n",
	"locker": "45 lines, 0 mixed up, 0 keys left\n",
}

// Each program is built as it is, and with only one import changed, and both builds do the same.
func TestPrograms(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("programs/*/main.go")
	require.NoError(t, err)
	require.Len(t, found, len(said), "a program without its words, or words without their program")
	asWritten, changed := build(t, found, false), build(t, found, true)
	for _, source := range found {
		name := filepath.Base(filepath.Dir(source))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, said[name])
			c := etcdtest.Shared(t)
			for which, dir := range map[string]string{"etcd's package": asWritten, "ours": changed} {
				t.Run(which, func(t *testing.T) {
					t.Parallel()
					out := run(t, filepath.Join(dir, name), fmt.Sprintf("program-%s-%d", name, stages.Add(1)), strings.Join(c.Endpoints(), ","))
					require.Equal(t, said[name], out)
				})
			}
		})
	}
}

// oneImport writes the program with the one import changed and returns the file.
func oneImport(t *testing.T, source string) string {
	t.Helper()
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(text, []byte(theirImport)), "INVALID: not one import to change")
	changed := bytes.Replace(text, []byte(theirImport), []byte(ourImport), 1)
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, changed, 0o600))
	return file
}

// build builds all programs in one go, as they are or with their one import changed, and returns
// the directory of the binaries. It verifies which package is in each.
func build(t *testing.T, sources []string, change bool) string {
	t.Helper()
	dir, wanted, replace := t.TempDir(), theirImport, map[string]string{}
	args := []string{"build", "-ldflags=-w", "-o", dir + string(filepath.Separator)} // debug information takes half of the time
	if change {
		wanted = ourImport
		for _, source := range sources {
			path, err := filepath.Abs(source)
			require.NoError(t, err)
			replace[path] = oneImport(t, source)
		}
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "overlay.json")
		require.NoError(t, os.WriteFile(file, overlay, 0o600))
		args = append(args, "-overlay", file)
	}
	out, err := exec.Command("go", append(args, "./programs/...")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	path := strings.Trim(wanted, `"`)
	for _, source := range sources {
		bin := filepath.Join(dir, filepath.Base(filepath.Dir(source)))
		symbols, err := os.ReadFile(bin)
		require.NoError(t, err)
		require.True(t, bytes.Contains(symbols, []byte(path+".NewSession")), "INVALID: %s is built without %s", bin, path)
	}
	return dir
}

// run runs a program and returns its output.
func run(t *testing.T, bin string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, bin, args...)
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	require.NoError(t, command.Run(), "%s%s", out.String(), complaints.String())
	return out.String()
}
