package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// deaf is a candidate that does not heed its context.
type deaf struct {
	Candidate
	leave <-chan struct{}
}

func (d deaf) Campaign(context.Context) (time.Time, error) {
	<-d.leave
	return time.Now(), nil
}

// Who waits for a campaign is told of the end of the context even if the contender does
// not heed it, and of one outcome only.
func TestCampaignOfTheDeaf(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	leave, enough := make(chan struct{}), errors.New("enough")
	won := campaign(ctx, deaf{leave: leave})
	cancel(enough)
	require.ErrorIs(t, (<-won).err, enough)
	close(leave)
	require.Never(t, func() bool { return len(won) > 0 }, 20*time.Millisecond, time.Millisecond)
}

// testRun is a run on the shared etcd that a test does the measuring for.
func testRun(t *testing.T, contenders ...string) *run {
	r, err := newRun(testContext(t), siteAt(etcdtest.Shared(t).Endpoints()), Options{Contenders: contenders})
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r
}

// A failed turn is a failure of everything that its place measures, and of a place of
// its own if nothing ever was; one that counts for more counts for more.
func TestFailuresCountEverywhere(t *testing.T) {
	r := testRun(t, "eldest", "herd")
	broken, turns := errors.New("broken"), 0
	err := r.interleave(testContext(t), point{regime: "r", rounds: 3}, func(_ context.Context, at *turn) error {
		turns++
		if at.contender == "herd" || turns == 1 {
			at.share = 2
			return broken
		}
		at.took("a", time.Second)
		at.sample("b", Counts, int64(turns))
		return nil
	})
	require.NoError(t, err)
	report := r.conclude()
	for _, metric := range []string{"a", "b"} {
		x := find(t, report, "eldest", "r", 0, metric)
		require.Equal(t, 2, x.Errors, metric)
		require.Equal(t, 4, x.Rounds, metric)
		require.Equal(t, "broken", x.FirstError, metric)
	}
	b := find(t, report, "eldest", "r", 0, "b")
	require.Equal(t, int64(3+5), b.Sum)
	require.InDelta(t, 4.0, b.Mean, 1e-9)
	none := find(t, report, "herd", "r", 0, "")
	require.Equal(t, 6, none.Errors)
	require.NotNil(t, none.Samples, "an empty list in JSON, too")
}

// A run in which nobody succeeds any more ends.
func TestBarrenRounds(t *testing.T) {
	r := testRun(t, "eldest", "herd")
	broken, turns := errors.New("broken"), 0
	err := r.interleave(testContext(t), point{rounds: 100}, func(context.Context, *turn) error {
		if turns++; turns == 3 {
			return nil
		}
		return broken
	})
	require.ErrorIs(t, err, errBarren)
	require.ErrorIs(t, err, broken)
	require.Equal(t, 8, turns, "a round in which one succeeds counts for nothing")
}

// A run that has lost a worker ends: whatever it were to host would fail.
func TestRunThatHasLostAWorker(t *testing.T) {
	r := testRun(t, "eldest")
	h, err := r.worker(testContext(t))
	require.NoError(t, err)
	require.Equal(t, 1, r.report.Setup.Processes)
	err = r.interleave(testContext(t), point{rounds: 100}, func(ctx context.Context, _ *turn) error {
		require.NoError(t, h.Kill())
		_, err := h.Wire(ctx)
		return err
	})
	require.ErrorIs(t, err, errWorkerGone)
}

// A cluster that dies does not hold a run up, whichever contender is at it, and neither
// does it hold up the end of one that is broken off.
func TestClusterThatDies(t *testing.T) {
	t.Parallel()
	for _, name := range contender.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := etcdtest.Start(t, etcdtest.Config{Members: 1})
			ctx, cancel := context.WithCancelCause(testContext(t))
			enough := errors.New("enough")
			r, err := newRun(ctx, Site{Client: clientv3.Config{Endpoints: cluster.Endpoints(), Logger: zap.NewNop()}}, Options{Contenders: []string{name}})
			require.NoError(t, err)
			hosts, err := r.hostsOf(ctx, 2)
			require.NoError(t, err)
			err = r.interleave(ctx, point{rounds: 2}, func(ctx context.Context, turn *turn) error {
				first, err := turn.candidate(ctx, hosts[0], "dies", time.Minute)
				require.NoError(t, err)
				_, err = lead(ctx, first)
				require.NoError(t, err)
				second, err := turn.candidate(ctx, hosts[1], "dies", time.Minute)
				require.NoError(t, err)
				queue, err := turn.watchOver(ctx, "other")
				require.NoError(t, err)
				queue.cancel()
				won := campaign(ctx, second)
				require.NoError(t, cluster.Member(0).Kill())
				cancel(enough)
				_, err = turn.watchOver(ctx, "another")
				require.Error(t, err)
				return (<-won).err
			})
			require.ErrorIs(t, err, enough)
			begun := time.Now()
			r.close()
			require.Less(t, time.Since(begun), parting+5*time.Second)
		})
	}
}
