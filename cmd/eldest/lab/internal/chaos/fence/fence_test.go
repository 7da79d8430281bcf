package fence

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a store; stop ends it and returns its history.
func serve(t *testing.T) (address string, stop func() []oracle.Event) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "store")
	in, end := io.Pipe()
	out, said := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Run(file, instant.Begin(), in, said) }()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	var r Ready
	require.NoError(t, json.Unmarshal(line, &r))
	return r.Address, func() []oracle.Event {
		require.NoError(t, end.Close())
		require.NoError(t, <-done)
		f, err := os.Open(file)
		require.NoError(t, err)
		defer func() { _ = f.Close() }()
		var about bytes.Buffer // the harness says that, elsewhere
		require.NoError(t, oracle.NewRecorder(&about, nil).About(oracle.About{}))
		h, err := oracle.Load(&about, f)
		require.NoError(t, err)
		return h.Events
	}
}

func TestOlderTokensAreRefused(t *testing.T) {
	address, stop := serve(t)
	a, b := Dial(address), Dial(address)
	offer := func(c *Client, who string, token int64, want bool) {
		t.Helper()
		got, err := c.Write(who, token)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	offer(a, "a", 5, true)
	offer(b, "b", 7, true)
	offer(a, "a", 5, false)
	a.Close() // and comes back
	offer(a, "a", 6, false)
	offer(b, "b", 7, true)
	a.Close()
	b.Close()

	var told []string
	for _, e := range stop() {
		told = append(told, e.Who+" "+string(e.Kind))
	}
	yes, no := string(oracle.FenceAccepted), string(oracle.FenceRefused)
	require.Equal(t, []string{"a " + yes, "b " + yes, "a " + no, "a " + no, "b " + yes}, told)

	_, err := a.Write("a", 9)
	require.Error(t, err, "nobody is there any more")
}
