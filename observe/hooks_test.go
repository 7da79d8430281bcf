package observe_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

// The hooks that are called during an observer's life, and what its methods return meanwhile.
func TestHooksOfAnObserver(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	host := etcdtest.Shared(t).Host(t)
	cli := host.Client(t)
	var mu sync.Mutex
	var story []string
	var self, last *observe.Observer
	var reasons []error
	tell := func(what string) { mu.Lock(); defer mu.Unlock(); story = append(story, what) }
	o := s.observer(quick, func(cfg *observe.Config) {
		cfg.KV, cfg.Watcher = cli, cli
		cfg.Hooks = observe.Hooks{
			Started: func(e observe.StartedEvent) { self = e.Observer; tell("started") },
			Interrupted: func(e observe.InterruptedEvent) {
				mu.Lock()
				reasons = append(reasons, e.Reason)
				mu.Unlock()
				tell("interrupted in " + e.Election)
			},
			Ended: func(e observe.EndedEvent) {
				last = e.Observer
				reasons = append(reasons, e.Cause)
				tell("ended")
			},
		}
	})
	sub := o.Subscribe()
	s.put(0xa, "a1")
	s.led(sub, 0xa, "a1")
	s.put(0xb, "b1")
	require.Eventually(t, func() bool { n, ok := o.Queue(); return ok && n == 2 }, 2*etcdtest.Patience, time.Millisecond)
	require.Equal(t, int64(1), o.Subscriptions())
	o.Subscribe()
	require.Equal(t, int64(2), o.Subscriptions())

	host.Cut()
	s.is(sub, eldest.Unknown)
	// Changes from before the cut may have been reported after an unknown state.
	require.Eventually(t, func() bool { _, ok := o.Queue(); return !ok }, 2*etcdtest.Patience, time.Millisecond,
		"the length of a queue that nobody looks at is not known")
	host.Mend()
	s.led(sub, 0xa, "a1")
	o.Close()
	_, ok := o.Queue()
	require.False(t, ok)

	require.Same(t, o, self)
	require.Same(t, o, last)
	require.Equal(t, "started", story[0])
	require.Equal(t, "ended", story[len(story)-1])
	for _, line := range story[1 : len(story)-1] {
		require.Equal(t, "interrupted in "+o.Election(), line)
	}
	require.Greater(t, len(story), 2, "the cut was not told of")
	for _, reason := range reasons {
		require.Error(t, reason)
	}
	require.ErrorIs(t, reasons[len(reasons)-1], eldest.ErrClosed)
	require.Zero(t, o.Dropped())
}
