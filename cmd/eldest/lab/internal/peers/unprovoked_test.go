package peers_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Systems without servers. Of the two candidates of hasty the one that waits wins, whatever the leader does: at once,
// because a turn is settled a third of a second after that. Of calm it waits. The participants of the first election of mortal die after half a second.
var (
	hasty, calm, mortal = fake("hasty"), fake("calm"), fake("mortal")
	fakes               = []peer.System{hasty, calm, mortal}
)

func fake(name string) peer.System {
	return peer.System{
		Name: name,
		Start: func(context.Context, peer.ServerConfig) (*peer.Servers, error) {
			return &peer.Servers{Writes: func(context.Context) (int64, error) { return 0, nil }}, nil
		},
		Dial: func(_ context.Context, cfg peer.ClientConfig) (peer.Client, error) {
			if name == "mortal" && strings.HasSuffix(cfg.Election, "-1") {
				time.AfterFunc(500*time.Millisecond, func() { os.Exit(3) })
			}
			return fakeClient{waits: cfg.Index > 0, hasty: name == "hasty"}, nil
		},
	}
}

type fakeClient struct{ waits, hasty bool }

func (fakeClient) Log(context.Context) ([]string, error) { return nil, nil }
func (fakeClient) Close() error                          { return nil }

func (c fakeClient) Campaign(ctx context.Context, _ string, queued func()) (peer.Tenure, error) {
	if c.waits {
		queued()
		if !c.hasty {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	return fakeTenure{}, nil
}

type fakeTenure struct{}

func (fakeTenure) Holds() bool                          { return true }
func (fakeTenure) Append(context.Context, string) error { return nil }
func (fakeTenure) Resign(context.Context) error         { return nil }

// A leader that is replaced without a fault is counted. Its round is set up once more, or is an error: it is
// neither a sample of the fault nor a minute at rest.
func TestUnprovoked(t *testing.T) {
	t.Parallel()
	for scenario, count := range map[string]int{peers.Handover: 2, peers.Crash: 2, peers.Rest: 1, peers.Memory: 1} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			o := options(t, "raft")
			o.Systems, o.Scenarios = []peer.System{hasty}, []string{scenario}
			report, err := peers.Run(etcdtest.ContextFor(t, time.Minute), o)
			require.NoError(t, err)
			require.Equal(t, []peers.Unprovoked{{System: "hasty", Setting: peer.Shortest, Count: count}}, report.Unprovoked)
			require.NotEmpty(t, report.Results)
			for _, r := range report.Results {
				require.Empty(t, r.Samples)
				require.Equal(t, 1, r.Errors)
				require.Contains(t, r.FirstError, "the leader lost its leadership without a fault")
			}
		})
	}
}
