package balance

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Assign says whose each shard is: to each member at most as many as Cap says. It is the
// same for all who ask with the same names, in whatever order.
//
// Each shard has an order of its own of all members, drawn by a hash, and takes the first
// that is not full. So a member that leaves frees its shards and moves few of the others,
// and one that comes takes about its share.
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

// weight is a number that looks drawn at random and is the same everywhere.
func weight(shard, member string) uint64 {
	sum := sha256.Sum256([]byte(shard + "\x00" + member))
	return binary.BigEndian.Uint64(sum[:])
}
