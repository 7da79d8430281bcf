package story_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fact struct {
	at   int64
	name string
}

func (f fact) When() time.Time { return time.Unix(f.at, 0) }

func TestHistoryIsInOrderOfTimes(t *testing.T) {
	var h story.History[fact]
	for _, f := range []fact{{3, "c"}, {1, "a"}, {3, "d"}, {2, "b"}} {
		h.Add(f)
	}
	require.Equal(t, []fact{{1, "a"}, {2, "b"}, {3, "c"}, {3, "d"}}, h.Facts())
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h story.History[fact]
		two := func(facts []fact) bool { return len(facts) == 2 }
		done := make(chan error)
		go func() { done <- h.Await(t.Context(), two) }()
		h.Add(fact{1, "a"})
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatal("it did not wait", err)
		default:
		}
		h.Add(fact{2, "b"})
		require.NoError(t, <-done)

		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		require.ErrorIs(t, h.Await(ctx, func([]fact) bool { return false }), why)
	})
}
