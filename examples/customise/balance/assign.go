package balance

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Assign returns the owner of each shard: a member owns at most Cap shards. The result is the same
// for the same names, in whatever order.
//
// Each shard has an order of its own of all members, computed by a hash, and goes to the first
// member that is not full. So a member that leaves frees its shards and moves few of the others,
// and a member that joins takes about its share.
func Assign(shards, members []string) map[string]string {
	owners, load := make(map[string]string, len(shards)), make(map[string]int, len(members))
	if len(members) == 0 {
		return owners
	}
	limit := Cap(len(shards), len(members))
	for _, shard := range slices.Sorted(slices.Values(shards)) {
		best, heaviest := "", uint64(0)
		for _, member := range members {
			if w := weight(shard, member); load[member] < limit && (best == "" || w > heaviest || w == heaviest && member < best) {
				best, heaviest = member, w
			}
		}
		owners[shard] = best
		load[best]++
	}
	return owners
}

// Cap is how many of k shards each of n members leads at most: k/n, rounded up.
func Cap(k, n int) int { return (k + n - 1) / n }

// weight returns a pseudo-random number that is the same in all processes.
func weight(shard, member string) uint64 {
	sum := sha256.Sum256([]byte(shard + "\x00" + member))
	return binary.BigEndian.Uint64(sum[:])
}
