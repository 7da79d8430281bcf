package resolver

import (
	"math/rand/v2"
	"slices"
	"sync"
)

// maxLearned is how many learned nodes a builder remembers for an election. Each one that is dead
// can cost NodesConfig.Timeout before the next is queried.
const maxLearned = 8

// known are the nodes that a connection can query. Each round queries those of the config first, in
// turn, and then those that led, the latest first: they may be gone for good.
type known struct {
	configured []string
	led        *learned
	at         int // the configured node that was queried last
	tried      int // the nodes that this round has queried
}

// newKnown begins with a random node of the config.
func newKnown(configured []string, led *learned) *known {
	return &known{configured: configured, led: led, at: rand.IntN(len(configured))}
}

// next returns the node to query next.
func (k *known) next() place {
	led := k.led.all()
	if k.tried >= len(k.configured)+len(led) {
		k.again()
	}
	k.tried++
	if back := k.tried - len(k.configured); back > 0 {
		return led[len(led)-back]
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
	k.led.add(leader)
}

// learned are the last nodes that led an election. All connections of a builder share them. A
// connection that was idle needs them, too: gRPC has closed its resolver, and builds another one.
//
// Invariant: there are at most maxLearned nodes, each with an address, all different. Those that are
// also in the config have a name. A slice that all has returned is never changed.
type learned struct {
	mu    sync.Mutex
	nodes []place // the latest last
}

func (l *learned) all() []place {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes
}

// add adds a node, or makes it the latest one.
func (l *learned) add(leader place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nodes := slices.DeleteFunc(slices.Clone(l.nodes), func(p place) bool { return p.address == leader.address })
	nodes = append(nodes, leader)
	l.nodes = nodes[max(0, len(nodes)-maxLearned):]
}
