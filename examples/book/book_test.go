package book_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

var update = flag.Bool("update", false, "write what the programs print to their output.txt")

// patience bounds a program, on a busy machine.
const patience = time.Minute

// Each program of the book, built as a reader builds it and run on an etcd without data, prints the
// text of its output.txt, revisions included, ends by itself, and leaves neither a key nor a lease.
// The test fails if the protocol, or etcd, does something else than the chapter describes.
func TestBook(t *testing.T) {
	programs, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	require.Len(t, programs, 10, "a chapter each")
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", bin+string(filepath.Separator), "./...")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, program := range programs {
		name := filepath.Dir(program)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			etcd := etcdtest.Start(t, etcdtest.Config{})
			said := play(t, filepath.Join(bin, name), etcd)
			wanted := filepath.Join(name, "output.txt")
			if *update {
				require.NoError(t, os.WriteFile(wanted, said, 0o644))
			}
			text, err := os.ReadFile(wanted)
			require.NoError(t, err)
			require.Equal(t, string(text), string(said))
			nothingIsLeft(t, etcd.Client(t))
		})
	}
}

// Every program has its chapter, in the order of doc.go, and each chapter names its program.
func TestEveryProgramHasItsChapter(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	listed := regexp.MustCompile(`(?m)^//\tgo run \./examples/book/(\S+) +chapter +(\d+)$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, listed, 10)
	for i, program := range listed {
		require.FileExists(t, filepath.Join(program[1], "main.go"))
		number := strings.Repeat("0", 2-len(program[2])) + program[2]
		chapter, err := os.ReadFile(filepath.Join("..", "..", "docs", "book", number+"-"+program[1]+".md"))
		require.NoError(t, err, "chapter %d", i+1)
		require.Contains(t, string(chapter), "go run ./examples/book/"+program[1])
		require.Contains(t, string(chapter), "<!-- trace "+program[1]+" -->")
	}
}

// play runs a program to its end and returns its output.
func play(t *testing.T, program string, etcd *etcdtest.Cluster) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), "ELDEST_ENDPOINTS="+strings.Join(etcd.Endpoints(), ","))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s%s", &stdout, &stderr)
	return stdout.Bytes()
}

// nothingIsLeft requires that there are no keys and no leases. A lease that has just expired may be
// listed for a moment longer.
func nothingIsLeft(t *testing.T, client *clientv3.Client) {
	t.Helper()
	all, err := client.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	require.Empty(t, all.Kvs)
	require.Eventually(t, func() bool {
		leases, err := client.Leases(t.Context())
		return err == nil && len(leases.Leases) == 0
	}, patience, 50*time.Millisecond, "a lease is left")
}
