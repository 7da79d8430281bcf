package plays_test

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// A lab has a cluster of its own, whatever the environment says, until a signal.
func TestLab(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := perform(t, "lab", "--json", "--participants", "2", "--listen", "0")
			b := clitest.Visit(t, p.Process, "sandbox")
			_, info := b.Get("/info")
			require.NotContains(t, info, "127.0.0.1:1\"", "the endpoint of the environment")
			require.Len(t, b.Queue(2), 2)
			code, body := b.Do(clitest.Object{"do": "kill", "on": "no such participant"})
			require.Equal(t, http.StatusConflict, code, body)
			code, body = b.Do(clitest.Object{"do": "kill", "whom": "p1"})
			require.Equal(t, http.StatusBadRequest, code, body)
			code, body = b.Do(clitest.Object{"do": "kill", "on": "p1"})
			require.Equal(t, http.StatusOK, code, body)
			// Three members and a participant, at least.
			p.leavesNothing(4, func() { p.Signal(sig) }, cli.ExitOK)
		})
	}
}

// It is killed while it runs: its processes end with it.
func TestLabIsKilled(t *testing.T) {
	t.Parallel()
	p := perform(t, "lab", "--json", "--listen", "0")
	require.Len(t, clitest.Visit(t, p.Process, "sandbox").Queue(3), 3)
	p.leavesNothing(6, func() { p.Signal(syscall.SIGKILL) }, -1)
}

// It ends by itself, and says for people where the page is.
func TestLabEndsByItself(t *testing.T) {
	t.Parallel()
	p := perform(t, "lab", "--participants", "0", "--members", "1", "--for", "100ms")
	require.Regexp(t, `\AThe page is at http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}\n\z`, p.Line())
	require.Contains(t, p.Line(), "Ctrl-C ends the lab, with everything that it has started.")
	p.Exits(cli.ExitOK)
	require.Empty(t, p.left())
}

// A scenario is played at the beginning. One that makes no sense is refused before the page is served.
func TestLabPlays(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "scenario.json")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(`{"steps":[{"after_ms":0,"do":"add","kind":"eldest"},{"after_ms":0,"do":"add","kind":"concurrency"}]}`)
	p := perform(t, "lab", "--json", "--participants", "0", "--members", "1", "--play", file)
	require.Len(t, clitest.Visit(t, p.Process, "sandbox").Queue(2), 2)
	p.Signal(syscall.SIGINT)
	p.Exits(cli.ExitOK)
	require.Empty(t, p.left())

	write(`{"steps":[{"after_ms":0,"do":"no such action"}]}`)
	p = perform(t, "lab", "--participants", "0", "--members", "1", "--play", file)
	p.Exits(cli.ExitUsage)
	require.Contains(t, p.Errors(), "--play")
	require.Empty(t, p.left())
}
