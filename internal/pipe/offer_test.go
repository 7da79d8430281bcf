//go:build unix

package pipe_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/internal/pipe"
)

// TestOffer: lines are written until the pipe is full; then nothing waits, and no part is written.
func TestOffer(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	line := make([]byte, 4096)
	written := 0
	for err = pipe.Offer(w, line); err == nil; err = pipe.Offer(w, line) {
		written += len(line)
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	require.NoError(t, w.Close())
	require.Error(t, pipe.Offer(w, line))
	read := 0
	for buffer := make([]byte, 64<<10); ; {
		n, err := r.Read(buffer)
		read += n
		if err != nil {
			break
		}
	}
	require.Equal(t, written, read)
	require.Positive(t, read)
}
