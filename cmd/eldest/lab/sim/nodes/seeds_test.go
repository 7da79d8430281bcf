package nodes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/elector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everyday is how many seeds a plain run takes; ELDEST_NODES_SEEDS says otherwise, and
// ELDEST_NODES_SEED names a single one.
const everyday = 100

// Random faults against three nodes. A failure prints its seed.
func TestNodes(t *testing.T) {
	from, to := 0, number(t, "ELDEST_NODES_SEEDS", everyday)
	if seed := number(t, "ELDEST_NODES_SEED", -1); seed >= 0 {
		from, to = seed, seed+1
	}
	begun, virtual, struck, tenures := time.Now(), time.Duration(0), map[string]int{}, 0
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rig.Run(t, func(w *rig.World) {
				s := play(w, rand.New(rand.NewPCG(uint64(seed), 3)), struck)
				virtual += w.Now()
				tenures += len(s.tenures)
			})
		})
	}
	t.Logf("%d seeds, %d tenures, %v of virtual time in %v: %v", to-from, tenures, virtual, time.Since(begun), struck)
	if to-from >= everyday {
		for _, f := range faults {
			require.Positive(t, struck[f.name], "INVALID: %q never struck", f.name)
		}
		require.Greater(t, tenures, 3*(to-from), "INVALID: leadership hardly ever changed")
	}
}

func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// troupe is the nodes of a play, each in its present life.
type troupe struct {
	*stage
	random *rand.Rand
	nodes  []*node
	lives  int
}

func (p *troupe) again(i int) {
	p.lives++
	p.nodes[i] = p.start(fmt.Sprintf("n%d", i), p.lives)
}

// faults are what may happen, to a node drawn at random or to the one that leads. Each
// says whether it struck.
var faults = []struct {
	name string
	do   func(p *troupe, i int) bool
}{
	{"cut both ways", func(p *troupe, i int) bool { p.nodes[i].host.Cut(rig.Both); return true }},
	{"cut one way", func(p *troupe, i int) bool {
		p.nodes[i].host.Cut([]rig.Way{rig.In, rig.Out}[p.random.IntN(2)])
		return true
	}},
	{"delay", func(p *troupe, i int) bool {
		p.nodes[i].host.Delay([]rig.Way{rig.In, rig.Out, rig.Both}[p.random.IntN(3)], time.Duration(p.random.Int64N(int64(p.ttl))))
		return true
	}},
	{"packets lost", func(p *troupe, i int) bool {
		p.nodes[i].host.Lossy([]rig.Way{rig.In, rig.Out, rig.Both}[p.random.IntN(3)], 0.5*p.random.Float64(), p.dice())
		return true
	}},
	{"starved", func(p *troupe, i int) bool {
		p.nodes[i].host.Starve(time.Duration(1+p.random.Int64N(int64(p.ttl))), p.dice())
		return true
	}},
	{"no space", func(p *troupe, _ int) bool { return p.world.Server.Full(true) == nil }},
	{"reset", func(p *troupe, i int) bool { return p.nodes[i].host.Reset() > 0 }},
	{"etcd down", func(p *troupe, _ int) bool { p.world.Server.Stop(); return true }},
	{"heal", func(p *troupe, _ int) bool { p.heal(); return true }},
	{"crash and restart", func(p *troupe, i int) bool { p.nodes[i].crash(); p.again(i); return true }},
	{"stop and restart", func(p *troupe, i int) bool { p.nodes[i].end(); p.again(i); return true }},
	{"give up", func(p *troupe, i int) bool {
		select {
		case p.quitOf(p.nodes[i].id) <- struct{}{}:
			return true
		default:
			return false
		}
	}},
	{"reply lost", func(p *troupe, i int) bool {
		method := []string{"/etcdserverpb.KV/Txn", "/etcdserverpb.Lease/LeaseRevoke", "/etcdserverpb.Lease/LeaseGrant"}[p.random.IntN(3)]
		host, reset := p.nodes[i].host, p.random.IntN(2) == 0
		host.Set(&rig.Trap{After: true, Lose: true, Match: func(m string, _ any) bool { return m == method }, Strike: func() {
			if reset {
				host.Reset()
			}
		}})
		return true
	}},
	{"compaction", func(p *troupe, _ int) bool {
		if !p.world.Server.Up() {
			return false
		}
		_, err := p.admin.Client.Compact(p.world.T.Context(), p.world.Server.Rev())
		return err == nil
	}},
}

// dice makes the source of what is random while a fault lasts: another goroutine's.
func (p *troupe) dice() *rand.Rand { return rand.New(rand.NewPCG(p.random.Uint64(), 4)) }

// heal ends every fault.
func (p *troupe) heal() {
	require.NoError(p.world.T, p.world.Server.Start())
	require.NoError(p.world.T, p.world.Server.Full(false))
	for _, n := range p.nodes {
		n.host.Starve(0, nil)
		n.host.Heal()
		n.host.Forget()
	}
}

func play(w *rig.World, random *rand.Rand, struck map[string]int) *stage {
	s := &stage{world: w, ttl: time.Duration(2+random.IntN(4)) * time.Second, admin: w.Host("admin")}
	p := &troupe{stage: s, random: random, nodes: make([]*node, 3)}
	for i := range p.nodes {
		p.again(i)
	}
	for range 25 {
		p.pass(time.Duration(random.Int64N(int64(2 * s.ttl))))
		i := random.IntN(len(p.nodes))
		if leader := p.leader(); leader >= 0 && random.IntN(2) == 0 {
			i = leader
		}
		fault := faults[random.IntN(len(faults))]
		if fault.do(p, i) {
			struck[fault.name]++
		}
	}
	p.heal()
	p.settle()
	for _, n := range p.nodes {
		n.end()
	}
	p.nothingLeft()
	require.Empty(w.T, s.wrong)
	require.Empty(w.T, s.overlaps(), "two leaders")
	return s
}

// pass lets time go by and looks at the statuses all the while.
func (p *troupe) pass(d time.Duration) {
	for end := p.world.Now() + d; p.world.Now() < end; {
		p.leader()
		time.Sleep(5 * time.Millisecond)
	}
}

// leader returns who leads, or -1, and judges that nobody else does.
func (p *troupe) leader() int {
	leader := -1
	for i, n := range p.nodes {
		if n.Status().Role() != elector.Leading {
			continue
		}
		if leader >= 0 && p.nodes[leader].Status().Role() == elector.Leading {
			p.violated("%s and %s are both leading", p.nodes[leader].id, n.id)
		}
		leader = i
	}
	return leader
}

// settle waits until one node leads, all others follow it, and nobody else is in the queue:
// for as long as the key of one that crashed stands, and a little.
func (p *troupe) settle() {
	queue := func() map[string]oracle.Change { return p.world.Server.Tap.Live(electionName+"/", electionName+"0") }
	settled := func() bool {
		leader := p.leader()
		if leader < 0 || len(queue()) != len(p.nodes) {
			return false
		}
		_, token, _ := p.nodes[leader].Status().Own()
		for i, n := range p.nodes {
			if l, ok := n.Status().Leader(); i != leader && (!ok || l.Token != token || l.NodeID != p.nodes[leader].id) {
				return false
			}
		}
		return true
	}
	for end := p.world.Now() + p.ttl + 15*time.Second; !settled(); {
		require.Less(p.world.T, p.world.Now(), end, "not one leader and its followers: %v, %v, %v; in the queue: %v",
			p.nodes[0].Status(), p.nodes[1].Status(), p.nodes[2].Status(), queue())
		time.Sleep(10 * time.Millisecond)
	}
}

// nothingLeft judges that neither keys nor leases are left, once those of the crashed
// have expired.
func (p *troupe) nothingLeft() {
	time.Sleep(2 * p.ttl)
	require.Empty(p.world.T, p.world.Server.Tap.Live(electionName+"/", electionName+"0"))
	// A new client: an old one may be in a long pause before it connects again.
	resp, err := p.world.Host("auditor").Client.Leases(p.world.T.Context())
	require.NoError(p.world.T, err)
	require.Empty(p.world.T, resp.Leases)
}
