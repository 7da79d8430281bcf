package resolver

import (
	"math/rand/v2"
	"slices"
)

// maxLearned is how many learned nodes a connection remembers. Each one that is dead can cost
// NodesConfig.Timeout before the next is queried.
const maxLearned = 8

// known are the nodes that can be queried. Each round queries those of the config first, in turn,
// and then those that led, the latest first: they may be gone for good.
//
// Invariant: learned has at most maxLearned nodes, each with an address, all different. Those that are
// also in the config have a name.
type known struct {
	configured []string
	learned    []place // the latest last
	at         int     // the configured node that was queried last
	tried      int     // the nodes that this round has queried
}

// newKnown begins with a random node of the config.
func newKnown(configured []string) *known {
	return &known{configured: configured, at: rand.IntN(len(configured))}
}

// next returns the node to query next.
func (k *known) next() place {
	if k.tried >= len(k.configured)+len(k.learned) {
		k.again()
	}
	k.tried++
	if back := k.tried - len(k.configured); back > 0 {
		return k.learned[len(k.learned)-back]
	}
	k.at = (k.at + 1) % len(k.configured)
	return place{address: k.configured[k.at]}
}

// again begins a new round.
func (k *known) again() { k.tried = 0 }

// learn adds a node that leads, or makes it the latest one. A node of the config is queried anyway,
// but not with the name that it has as the leader.
func (k *known) learn(leader place) {
	if leader.address == "" || leader.serverName == "" && slices.Contains(k.configured, leader.address) {
		return
	}
	k.learned = append(slices.DeleteFunc(k.learned, func(p place) bool { return p.address == leader.address }), leader)
	if len(k.learned) > maxLearned {
		k.learned = k.learned[1:]
	}
}
