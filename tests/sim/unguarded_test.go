package sim

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/oracle"
)

// Without the guard, the last write of a leader that was deposed goes through. The
// checkers of the store's changes must find it, and so must the one that knows
// nothing but what participants were told.
func TestScenariosFindWritesWithoutGuard(t *testing.T) {
	const scenarios = 100 // at most: most are over when each has found it once
	invariants := []string{"I2", "I3", "linear"}
	unguarded := Eldest
	unguarded.Open = func(ctx context.Context, client *clientv3.Client, as Seat) (Contender, error) {
		c, err := Eldest.Open(ctx, client, as)
		if err != nil {
			return nil, err
		}
		return careless{c, client}, nil
	}
	found := map[string]int{}
	for n := 0; n < scenarios && len(found) < len(invariants); n++ {
		r := run(t, unguarded, draw(uint64(n)))
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

// careless wins as it should, and writes as it likes.
type careless struct {
	Contender
	client *clientv3.Client
}

func (c careless) Campaign(ctx context.Context) (Tenure, error) {
	t, err := c.Contender.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	return carelessTenure{t, c.client}, nil
}

type carelessTenure struct {
	Tenure
	client *clientv3.Client
}

func (t carelessTenure) Write(ctx context.Context, key, value string) (int64, error) {
	resp, err := t.client.Put(ctx, key, value)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnclear, err)
	}
	return resp.Header.Revision, nil
}
