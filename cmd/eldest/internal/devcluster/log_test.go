package devcluster_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
)

// single is a writer that must not be called concurrently, as most writers must not.
type single struct{ writing, broken atomic.Bool }

func (s *single) Write(line []byte) (int, error) {
	if !s.writing.CompareAndSwap(false, true) {
		s.broken.Store(true)
	}
	time.Sleep(100 * time.Microsecond)
	s.writing.Store(false)
	return len(line), nil
}

// The members of a cluster write to one log, one line at a time.
func TestLogOfSeveralMembers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), devcluster.StartTimeout)
	defer cancel()
	var log single
	cluster, err := devcluster.Start(ctx, devcluster.Config{Members: 3, Log: &log})
	require.NoError(t, err)
	require.NoError(t, cluster.Close())
	require.False(t, log.broken.Load(), "two members at a time")
}
