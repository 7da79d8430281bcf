package balance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/examples/customise/balance"
)

func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return all
}

// moved counts the shards whose owner has changed.
func moved(before, after map[string]string) (n int) {
	for shard, owner := range after {
		if before[shard] != owner {
			n++
		}
	}
	return n
}

func TestAssign(t *testing.T) {
	require.Empty(t, balance.Assign(names("s", 3), nil))
	for _, k := range []int{0, 1, 7, 64, 100} {
		shards := names("s", k)
		for n := 1; n <= 12; n++ {
			members := names("m", n)
			owners := balance.Assign(shards, members)
			require.Len(t, owners, k, "every shard has an owner")
			load := map[string]int{}
			for _, owner := range owners {
				load[owner]++
				require.LessOrEqual(t, load[owner], balance.Cap(k, n))
				require.Contains(t, members, owner)
			}
			slices.Reverse(members)
			slices.Reverse(shards)
			require.Equal(t, owners, balance.Assign(shards, members), "whatever the order")
		}
	}
}

// A change moves the shards that it must, and few others: a member that leaves frees at most Cap
// shards, and with the others at most twice that are moved, on average over many groups.
func TestAssignMovesFew(t *testing.T) {
	const k, groups = 120, 20
	for n := 2; n <= 10; n++ {
		total := 0
		for group := range groups {
			shards := names(fmt.Sprintf("group-%d", group), k)
			more := balance.Assign(shards, names("m", n))
			less := balance.Assign(shards, names("m", n)[:n-1])
			total += moved(more, less) // as many as in the other direction
		}
		average := float64(total) / groups
		t.Logf("%d members, one leaves: %.1f of %d shards move; its share is %d", n, average, k, balance.Cap(k, n))
		require.LessOrEqual(t, average, 2*float64(balance.Cap(k, n)))
	}
}
