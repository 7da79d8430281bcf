package peers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/systems"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// hasty is a system without servers: the candidate that waits wins a moment later, whatever the leader does.
var hasty = peer.System{
	Name: "hasty",
	Start: func(context.Context, peer.ServerConfig) (*peer.Servers, error) {
		return &peer.Servers{Writes: func(context.Context) (int64, error) { return 0, nil }}, nil
	},
	Dial: func(_ context.Context, cfg peer.ClientConfig) (peer.Client, error) {
		return hastyClient(cfg.Index), nil
	},
}

// named is systems.Named, and hasty.
func named(name string) (peer.System, bool) {
	if name == hasty.Name {
		return hasty, true
	}
	return systems.Named(name)
}

// hastyClient is a participant's number.
type hastyClient int

func (hastyClient) Log(context.Context) ([]string, error) { return nil, nil }
func (hastyClient) Close() error                          { return nil }

func (c hastyClient) Campaign(_ context.Context, _ string, queued func()) (peer.Tenure, error) {
	if c > 0 {
		queued()
		time.Sleep(100 * time.Millisecond)
	}
	return hastyTenure{}, nil
}

type hastyTenure struct{}

func (hastyTenure) Holds() bool                          { return true }
func (hastyTenure) Append(context.Context, string) error { return nil }
func (hastyTenure) Resign(context.Context) error         { return nil }

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
