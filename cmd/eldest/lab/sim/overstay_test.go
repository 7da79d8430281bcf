package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/lease"
)

// A session that counts from the replies of its renewals, and not from when they were
// sent, outlives its lease where replies come late and then nothing comes any more.
func TestScenariosFindDeadlinesFromReplies(t *testing.T) {
	const first, scenarios = 450, 1500 // at most: few find it, and the first that do come soon after
	invariants := []string{"I1", "I6"}
	late := contender.Ours{Lease: func(cfg *lease.Config) {
		client := cfg.Lease.(*clientv3.Client)
		cfg.Lease, cfg.Majority = countsFromReplies{client}, client
	}}
	found := map[string]int{}
	n := 0
	for ; n < scenarios && len(found) < len(invariants); n++ {
		for _, v := range run(t, late, draw(uint64(first+n))).violations {
			for _, invariant := range invariants {
				if v.Invariant == invariant {
					found[invariant]++
				}
			}
		}
	}
	t.Logf("violations found in %d scenarios: %v", n, found)
	for _, invariant := range invariants {
		require.NotZero(t, found[invariant], "%s was never found violated", invariant)
	}
}

// countsFromReplies has a renewal's TTL begin where its reply came, to the second: replies
// tell whole ones.
type countsFromReplies struct{ clientv3.Lease }

func (l countsFromReplies) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	sent := time.Now()
	resp, err := l.Lease.KeepAliveOnce(ctx, id)
	if err != nil {
		return nil, err
	}
	late := *resp
	late.TTL += int64(time.Since(sent).Round(time.Second) / time.Second)
	return &late, nil
}
