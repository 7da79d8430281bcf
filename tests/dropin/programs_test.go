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

// The programs are built as they are, and with only one import of each changed, and both builds do
// the same.
func TestPrograms(t *testing.T) {
	t.Parallel()
	c := etcdtest.Shared(t)
	for which, bin := range map[string]string{"etcd's package": build(t, theirImport), "ours": build(t, ourImport)} {
		for program, words := range said {
			t.Run(which+"/"+program, func(t *testing.T) {
				t.Parallel()
				name := fmt.Sprintf("program-%s-%d", program, stages.Add(1))
				require.Equal(t, words, run(t, bin, program, name, strings.Join(c.Endpoints(), ",")))
			})
		}
	}
}

// build builds the programs with one of the two packages, by changing the import in each file, and
// returns the binary.
func build(t *testing.T, with string) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	sources, err := filepath.Glob("programs/*.go")
	require.NoError(t, err)
	require.Len(t, sources, len(said)+1, "a program without its words, or words without their program")
	for _, source := range sources {
		if filepath.Base(source) == "main.go" {
			continue
		}
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(text, []byte(theirImport)), "INVALID: not one import to change")
		path, err := filepath.Abs(source)
		require.NoError(t, err)
		replace[path] = filepath.Join(dir, filepath.Base(source))
		text = bytes.Replace(text, []byte(theirImport), []byte(with), 1)
		require.NoError(t, os.WriteFile(replace[path], text, 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	file, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "programs")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))
	// Debug information takes half of the time.
	build := exec.Command("go", "build", "-ldflags=-w", "-overlay", file, "-o", bin, "./programs")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	symbols, err := os.ReadFile(bin)
	require.NoError(t, err)
	symbol := strings.Trim(with, `"`) + ".NewSession"
	require.True(t, bytes.Contains(symbols, []byte(symbol)), "INVALID: built without %s", symbol)
	return bin
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
