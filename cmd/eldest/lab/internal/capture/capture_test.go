package capture_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/capture"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

func start(t *testing.T, cfg capture.Config) *capture.Capture {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := capture.Start(ctx, cfg)
	require.NoError(t, err)
	return c
}

func put(ctx context.Context, t *testing.T, endpoint, key string) error {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err = client.Put(ctx, key, "v")
	return err
}

// TestProgram is the program that other tests run: it sends requests to the given addresses.
func TestProgram(t *testing.T) {
	if os.Getenv("CAPTURE_TEST_PROGRAM") == "" {
		t.SkipNow() //nolint:forbidigo // not a test of its own
	}
	for _, name := range []string{"ELDEST_ENDPOINTS", "ETCDCTL_ENDPOINTS"} {
		require.NoError(t, put(t.Context(), t, os.Getenv(name), name))
	}
}

// A program receives the address, its exit code is returned, and its messages are kept.
func TestRun(t *testing.T) {
	t.Setenv("ETCDCTL_CACERT", "/nowhere")
	t.Setenv("ELDEST_KEY", "/nowhere")
	t.Setenv("ELDEST_TOKEN", "12")
	t.Setenv("ELDEST_FOLLOW_MEMBERS", "true")
	c := start(t, capture.Config{})
	var out bytes.Buffer
	code, err := c.Run(t.Context(), capture.Program{
		Args: []string{"sh", "-c", `cat; echo {} $ELDEST_ENDPOINTS $ETCDCTL_ENDPOINTS ${ETCDCTL_CACERT-none} ${ELDEST_KEY-none} $ELDEST_TOKEN $ELDEST_FOLLOW_MEMBERS; exit 3`},
		In:   strings.NewReader("input "), Out: &out,
	})
	require.NoError(t, err)
	require.Equal(t, 3, code)
	e := c.Endpoint()
	require.Equal(t, "input "+e+" "+e+" "+e+" none none 12 false\n", out.String())

	code, err = c.Run(t.Context(), capture.Program{Args: []string{"/nonexistent"}})
	require.Error(t, err)
	require.Equal(t, -1, code)

	t.Setenv("CAPTURE_TEST_PROGRAM", "1")
	code, err = c.Run(t.Context(), capture.Program{Args: []string{os.Args[0], "-test.run=^TestProgram$"}, Out: &out, Err: &out})
	require.NoError(t, err)
	require.Zero(t, code, out.String())

	messages, err := c.Close()
	require.NoError(t, err)
	require.Len(t, messages, 4)
}

// A program that does not end is interrupted.
func TestInterrupted(t *testing.T) {
	c := start(t, capture.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	r, w, err := os.Pipe()
	require.NoError(t, err)
	go func() {
		_, _ = r.Read(make([]byte, 1)) // it runs
		cancel()
	}()
	code, err := c.Run(ctx, capture.Program{Args: []string{"sh", "-c", "trap 'exit 9' INT; echo; while :; do sleep 0.05; done"}, Out: w})
	require.NoError(t, err)
	require.Equal(t, 9, code)
	_ = w.Close()
	_ = r.Close()
	_, err = c.Close()
	require.NoError(t, err)
}

// Messages that do not match the filter are neither passed to Tell nor kept; after Freeze none are. What
// a lane sends after Cut is kept, and does not arrive.
func TestFilterFreezeAndCut(t *testing.T) {
	told := make(chan wiretap.Message, 10)
	c := start(t, capture.Config{
		Filter: func(m wiretap.Message) bool { return m.Kind == wiretap.Request },
		Tell:   func(m wiretap.Message) { told <- m },
	})
	require.NoError(t, put(t.Context(), t, c.Endpoint(), "k"))
	require.NoError(t, c.Await(t.Context(), func(m []wiretap.Message) bool { return len(m) == 1 }))
	require.False(t, (<-told).Lost)
	ctx, cancel := context.WithCancel(t.Context())
	c.Cut("client-2")
	go func() {
		if m := <-told; m.Lost {
			cancel()
		}
	}()
	require.ErrorIs(t, put(ctx, t, c.Endpoint(), "k"), context.Canceled)
	require.ErrorIs(t, c.Await(ctx, func([]wiretap.Message) bool { return false }), context.Canceled)
	c.Freeze()
	require.NoError(t, put(t.Context(), t, c.Endpoint(), "k"))
	messages, err := c.Close()
	require.NoError(t, err)
	require.Len(t, messages, 2)
	require.Empty(t, told)
}

// Too many messages are an error; a partial trace is not returned silently.
func TestTooLong(t *testing.T) {
	c := start(t, capture.Config{})
	for range capture.MaxMessages + 1 {
		c.Note("", "note")
	}
	_, err := c.Close()
	require.ErrorIs(t, err, capture.ErrTooLong)

	c = start(t, capture.Config{Forget: true})
	c.Note("", "note")
	messages, err := c.Close()
	require.NoError(t, err)
	require.Empty(t, messages)
}
