package elector_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/observe"
)

var (
	stormLasts = flag.Duration("storm", 6*time.Second, "how long TestStorm lasts")
	stormSeed  = flag.Uint64("storm.seed", 0, "the seed of TestStorm's faults; 0: one drawn at random")
)

// gust is the TTL in a storm, the shortest that is allowed. Leases may be lost because of that:
// each loss is one more transition to test.
const gust = time.Second

// slow is how long some lead functions take to stop; it is within Config.Drain.
const slow = 700 * time.Millisecond

// storm is four nodes on hosts of their own, a cluster of three, and faults at random times. A seed
// repeats the faults, not the exact interleaving.
type storm struct {
	t       *testing.T
	cluster *etcdtest.Cluster
	name    string
	seats   []*seat
	samples *samples
	ctx     context.Context // ends with the storm
	begin   time.Time

	mu     sync.Mutex
	faults map[string]int
}

// seat is a node ID, with one elector after another.
type seat struct {
	storm   *storm
	id      string
	host    *etcdtest.Host
	cli     *clientv3.Client
	life    atomic.Pointer[elector.Elector]
	running atomic.Int32
	tenures atomic.Int32
	enough  chan struct{} // makes the lead function return
	stop    context.CancelFunc
	living  sync.WaitGroup
}

// TestStorm: under all faults no two nodes lead at one moment (I1), the tokens of guarded writes
// never decrease (I3), a lead function never overlaps itself (G7), and no node follows itself. When
// the faults are over, exactly one node leads, the queue consists of the nodes, and nothing is left
// when they have ended.
func TestStorm(t *testing.T) {
	t.Parallel()
	seed := *stormSeed
	for seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-storm.seed=%d", seed)
	ctx, over := context.WithTimeout(context.Background(), *stormLasts)
	defer over()
	s := &storm{
		t: t, cluster: three(t), name: etcdtest.Election(t),
		ctx: ctx, begin: time.Now(), faults: make(map[string]int),
	}
	var names []string
	var statuses []func() elector.Status
	for _, id := range []string{"n0", "n1", "n2", "n3"} {
		p := s.sit(id)
		names, statuses = append(names, id), append(statuses, func() elector.Status { return p.life.Load().Status() })
	}
	s.samples = sampleAll(t, names, statuses)

	var blowing sync.WaitGroup
	for i, faults := range [][]fault{s.ofHosts(), s.ofMembers(), s.ofNodes()} {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		blowing.Go(func() { s.blow(r, faults) })
	}
	blowing.Wait()
	s.calm()
	written := s.written()
	t.Logf("faults: %v; %d guarded writes", s.faults, written)
	var did etcdtest.Stats
	tenures := int32(0)
	for _, p := range s.seats {
		st := p.host.Stats()
		did.Reset, did.Swallowed = did.Reset+st.Reset, did.Swallowed+st.Swallowed
		did.Dropped.Inbound += st.Dropped.Inbound + st.Dropped.Outbound
		did.Held.Inbound += st.Held.Inbound + st.Held.Outbound
		tenures += p.tenures.Load()
	}
	t.Logf("%d tenures; %d connections reset, %d replies swallowed, %d pieces dropped and %d held", tenures, did.Reset, did.Swallowed, did.Dropped.Inbound, did.Held.Inbound)
	require.Greater(t, tenures, int32(*stormLasts/(5*time.Second)), "INVALID: hardly anything happened")
	require.Greater(t, written, int(tenures), "INVALID: hardly anything was written")
	require.Positive(t, did.Dropped.Inbound+did.Held.Inbound+did.Reset, "INVALID: no fault took effect")
}

// sit makes a seat and starts its first elector.
func (s *storm) sit(id string) *seat {
	p := &seat{storm: s, id: id, host: s.cluster.Host(s.t), enough: make(chan struct{}, 1)}
	p.cli = p.host.Client(s.t)
	s.seats = append(s.seats, p)
	p.live()
	s.t.Cleanup(p.end)
	return p
}

func (p *seat) live() {
	e, err := elector.New(config(p.storm.name, p.id, p.cli, ttl(gust), func(cfg *elector.Config) {
		cfg.Drain, cfg.Observer = 2*slow, observe.Options{}
		cfg.TakeOver = true // the previous instance has ended
	}))
	require.NoError(p.storm.t, err)
	p.life.Store(e)
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.living.Go(func() { assert.ErrorIs(p.storm.t, e.Run(ctx, p.lead), context.Canceled) })
	p.living.Go(func() { p.look(ctx, e) })
}

// end stops the elector and waits for all of its goroutines.
func (p *seat) end() {
	p.stop()
	p.living.Wait()
}

// lead writes through its guard all the time.
func (p *seat) lead(ctx context.Context, l *elector.Leadership) error {
	if !assert.EqualValues(p.storm.t, 1, p.running.Add(1), "%s: G7", p.id) {
		return nil
	}
	defer p.running.Add(-1)
	p.tenures.Add(1)
	select {
	case <-p.enough: // sent for an earlier tenure
	default:
	}
	rhythm := time.NewTicker(5 * time.Millisecond)
	defer rhythm.Stop()
	for {
		select {
		case <-ctx.Done():
			if p.tenures.Load()%3 == 0 {
				time.Sleep(slow)
			}
			return nil
		case <-p.enough:
			return errEnough
		case <-rhythm.C:
		}
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), 300*time.Millisecond)
		_, _ = l.KV().Put(once, "of-"+p.storm.name, strconv.FormatInt(int64(l.Token()), 10)) // refused, lost or done
		cancel()
	}
}

// look checks the statuses of one elector.
func (p *seat) look(ctx context.Context, e *elector.Elector) {
	var newest eldest.Token
	for w := e.Watch(); ; {
		s, err := w.Next(ctx)
		if err != nil {
			return
		}
		_, token, _ := s.Own()
		if leader, follows := s.Leader(); follows {
			token = leader.Token
			assert.NotEqual(p.storm.t, p.id, leader.NodeID, "it follows itself")
		}
		if token > 0 {
			assert.GreaterOrEqual(p.storm.t, token, newest, "%s: tokens go back: %v", p.id, s)
			newest = token
		}
	}
}
