package sim

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Without the guard, the last write of a leader that was deposed goes through. The
// checkers of the store's changes must find it, and so must the one that knows
// nothing but what participants were told.
func TestScenariosFindWritesWithoutGuard(t *testing.T) {
	const scenarios = 100 // at most: most are over when each has found it once
	invariants := []string{"I2", "I3", "linear"}
	found := map[string]int{}
	for n := 0; n < scenarios && len(found) < len(invariants); n++ {
		p := draw(uint64(n))
		p.spoil = func(t contender.Tenure, client *clientv3.Client) contender.Tenure { return careless{t, client} }
		r := run(t, contender.Ours{}, p)
		for _, check := range []func(*oracle.History) []oracle.Violation{oracle.I2, oracle.I3, oracle.Linear} {
			for _, v := range check(r.history) {
				found[v.Invariant]++
			}
		}
	}
	t.Logf("violations found: %v", found)
	for _, invariant := range invariants {
		require.NotZero(t, found[invariant], "%s was never found violated", invariant)
	}
}

// careless is a tenure whose holder writes as it likes.
type careless struct {
	contender.Tenure
	client *clientv3.Client
}

func (c careless) Do(ctx context.Context, op clientv3.Op) (*clientv3.TxnResponse, error) {
	return c.client.Txn(ctx).Then(op).Commit()
}
