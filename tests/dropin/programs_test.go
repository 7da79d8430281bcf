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

// said is what each program must say, whichever package it was built with.
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

// Each program is built as it is, and with one import changed and nothing else, and does
// the same.
func TestPrograms(t *testing.T) {
	found, err := filepath.Glob("programs/*/main.go")
	require.NoError(t, err)
	require.Len(t, found, len(said), "a program without its words, or words without their program")
	for _, source := range found {
		name := filepath.Base(filepath.Dir(source))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, said[name])
			c := etcdtest.Shared(t)
			asWritten := build(t, source, "")
			changed := build(t, source, oneImport(t, source))
			for which, bin := range map[string]string{"etcd's package": asWritten, "ours": changed} {
				out := run(t, bin, fmt.Sprintf("program-%s-%d", name, stages.Add(1)), strings.Join(c.Endpoints(), ","))
				require.Equal(t, said[name], out, "built with %s", which)
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

// build builds a program, with another file in place of its source if there is one, and
// makes sure which package is in it.
func build(t *testing.T, source, instead string) string {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "program")
	args := []string{"build", "-o", bin}
	wanted := theirImport
	if instead != "" {
		wanted = ourImport
		path, err := filepath.Abs(source)
		require.NoError(t, err)
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: instead}})
		require.NoError(t, err)
		file := filepath.Join(dir, "overlay.json")
		require.NoError(t, os.WriteFile(file, overlay, 0o600))
		args = append(args, "-overlay", file)
	}
	command := exec.Command("go", append(args, "./"+filepath.Dir(source))...)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	symbols, err := os.ReadFile(bin)
	require.NoError(t, err)
	path := strings.Trim(wanted, `"`)
	require.True(t, bytes.Contains(symbols, []byte(path+".NewSession")), "INVALID: built without %s", path)
	return bin
}

// run runs a program and returns what it said.
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
