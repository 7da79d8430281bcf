package campaigns_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/campaigns"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/capture"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/transcript"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

var update = flag.Bool("update", false, "write testdata anew")

// patient is a TTL that expires soon, but is long enough for renewals on a busy machine.
const patient = 6 * time.Second

// dial returns clients whose lane is their user agent.
func dial(endpoint string) func(string) (*clientv3.Client, error) {
	return func(lane string) (*clientv3.Client, error) {
		return clientv3.New(clientv3.Config{
			Endpoints: []string{endpoint}, Logger: zap.NewNop(),
			DialOptions: []grpc.DialOption{grpc.WithUserAgent(lane)},
		})
	}
}

// play runs a scenario on its own etcd, and returns the recorded messages.
func play(t *testing.T, cfg campaigns.Config) []wiretap.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := capture.Start(ctx, capture.Config{})
	require.NoError(t, err)
	cfg.Election = "jobs"
	cfg.Dial = dial(c.Endpoint())
	err = campaigns.Play(ctx, c, cfg)
	messages, closed := c.Close()
	require.NoError(t, err)
	require.NoError(t, closed)
	return messages
}

// golden compares a normal form with the committed file. Rewrite the files with go test
// ./internal/campaigns -update, and read the difference.
func golden(t *testing.T, name string, messages []wiretap.Message) {
	t.Helper()
	var is bytes.Buffer
	require.NoError(t, transcript.Print(&is, transcript.Normalise(messages)))
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, is.Bytes(), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), is.String())
}

// Two runs of a scenario give the same messages, those of the committed file.
func TestScenes(t *testing.T) {
	t.Parallel()
	for _, act := range []campaigns.Act{campaigns.Resign, campaigns.Withdraw, campaigns.Delete, campaigns.Crash} {
		for _, contender := range []string{contender.Eldest, contender.Concurrency} {
			t.Run(contender+"-"+string(act), func(t *testing.T) {
				t.Parallel()
				cfg := campaigns.Config{Act: act, Contender: contender}
				if act == campaigns.Crash {
					cfg.TTL = patient
				}
				golden(t, contender+"-"+string(act), play(t, cfg))
			})
		}
	}
}

// A leader that is partitioned stops leading, its requests are lost, and the next candidate leads
// after the lease has expired. How many requests it sends meanwhile depends on the machine.
func TestCut(t *testing.T) {
	t.Parallel()
	stopped, lost, renewed, won := false, false, false, false
	for _, m := range play(t, campaigns.Config{Act: campaigns.Cut, Candidates: 2, TTL: patient}) {
		switch r := m.Body.(type) {
		case *etcdserverpb.LeaseKeepAliveRequest:
			lost = lost || m.Lost
		case *etcdserverpb.LeaseKeepAliveResponse:
			renewed = renewed || m.Lane == "c2" && r.TTL > 0
		}
		stopped = stopped || m.Lane == "c1" && m.Text == "no longer leads"
		won = won || m.Lane == "c2" && m.Text == "leads"
	}
	require.True(t, stopped)
	require.True(t, lost)
	require.True(t, renewed)
	require.True(t, won)
}

// An invalid scenario is refused before any client is made.
func TestInvalid(t *testing.T) {
	for name, cfg := range map[string]campaigns.Config{
		"no election":       {},
		"a name with slash": {Election: "a/b"},
		"an unknown act":    {Election: "e", Act: "dance"},
		"one candidate":     {Election: "e", Candidates: 1},
		"two to withdraw":   {Election: "e", Act: campaigns.Withdraw, Candidates: 2},
		"a crowd":           {Election: "e", Candidates: 21},
		"a stranger":        {Election: "e", Contender: "zookeeper"},
		"a negative TTL":    {Election: "e", TTL: -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, campaigns.Play(t.Context(), nil, cfg), campaigns.ErrInvalid)
		})
	}
}

// When the context ends, the scenario ends and leaves nothing behind.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := capture.Start(ctx, capture.Config{})
	require.NoError(t, err)
	err = campaigns.Play(ctx, c, campaigns.Config{
		Election: "jobs", Act: campaigns.Crash, TTL: time.Hour,
		Dial: func(lane string) (*clientv3.Client, error) {
			if lane == "c3" {
				cancel()
			}
			return dial(c.Endpoint())(lane)
		},
	})
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Close()
	require.NoError(t, err)
}
