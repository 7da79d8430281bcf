package fence_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/fence"
)

func TestMemory(t *testing.T) {
	m := &fence.Memory{}
	for _, step := range []struct {
		election      string
		token, newest eldest.Token
	}{
		{"a", 5, 5}, {"a", 5, 5}, {"a", 4, 5}, {"b", 1, 1}, {"a", 9, 9}, {"a", 5, 9}, {"b", 2, 2}, {"a", 9, 9},
	} {
		newest, err := m.Advance(t.Context(), step.election, step.token)
		require.NoError(t, err)
		require.Equal(t, step.newest, newest)
	}
}

// What Memory says of itself: after a restart the older leader is admitted, until the newer
// one comes again.
func TestMemoryForgetsAtARestart(t *testing.T) {
	before := newFence(t)
	require.NoError(t, before.Admit(t.Context(), "billing", 7))
	require.ErrorIs(t, before.Admit(t.Context(), "billing", 5), eldest.ErrNotLeading)
	after := newFence(t)
	require.NoError(t, after.Admit(t.Context(), "billing", 5), "it has seen nothing")
	require.NoError(t, after.Admit(t.Context(), "billing", 7))
	require.ErrorIs(t, after.Admit(t.Context(), "billing", 5), eldest.ErrNotLeading)
}

// TestConcurrentSafe: from the moment at which a token was admitted no older one is,
// whoever asks.
func TestConcurrentSafe(t *testing.T) {
	const workers, requests, tokens = 16, 500, 200
	f := newFence(t, func(cfg *fence.Config) { cfg.Elections = []string{"billing", "orders"} })
	var newest [2]atomic.Int64 // the greatest that is known to have been admitted
	var admitted, refused atomic.Int64
	var wg sync.WaitGroup
	for worker := range workers {
		random := rand.New(rand.NewPCG(1, uint64(worker)))
		wg.Go(func() {
			for range requests {
				which := random.IntN(2)
				election, token := []string{"billing", "orders"}[which], random.Int64N(tokens)+1
				known := newest[which].Load()
				err := f.Admit(t.Context(), election, eldest.Token(token))
				var older *fence.RefusedError
				switch {
				case err == nil && token < known:
					t.Errorf("%s: token %d was admitted after %d", election, token, known)
				case err == nil:
					admitted.Add(1)
					for seen := newest[which].Load(); seen < token && !newest[which].CompareAndSwap(seen, token); {
						seen = newest[which].Load()
					}
				case !errors.As(err, &older):
					t.Error(err)
				case int64(older.Token) != token || int64(older.Newest) < known || older.Election != election:
					t.Errorf("token %d, when %d had been admitted: %v", token, known, err)
				default:
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, workers*requests, admitted.Load()+refused.Load())
	require.Positive(t, admitted.Load())
	require.Positive(t, refused.Load())
}
