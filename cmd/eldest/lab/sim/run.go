package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/cmd/eldest/lab/sim/rig"
	"github.com/eldest-io/eldest/observe"
)

const (
	electionName = "election"
	prefix       = electionName + "/"
	dataKey      = "data"
)

// run runs a plan, step by step, in a world.
type run struct {
	*plan
	world   *rig.World
	log     *oracle.Log
	admin   *rig.Host      // revokes, deletes, compacts; has no faults
	healed  chan struct{}  // closed when calm is set
	calm    atomic.Bool    // the faults are over: leaders need not write so often
	next    time.Duration  // from this step to the next one
	asking  sync.WaitGroup // pending transfers and departures
	outside outside

	mu           sync.Mutex
	participants []*participant
	struck       map[string]int
	lost         map[string]time.Duration // when a host last lost a reply, by name
	removed      map[int64]bool           // tenures whose key was removed by hand
	open         []func()                 // count faults that may not have ended
	owed         bool                     // space must be restored, when the server is up again
	again        int                      // processes that were started after a crash
	wrong        []oracle.Violation       // found here, and not by the oracle
}

// play runs a plan in a world and judges it.
func (p *plan) play(w *rig.World) *result {
	r := &run{
		plan: p, world: w, log: oracle.NewLog(w.Now, w.Server.Rev), admin: w.Host(rig.Admin), healed: make(chan struct{}),
		struck: map[string]int{}, lost: map[string]time.Duration{}, removed: map[int64]bool{},
	}
	ctx, stop := context.WithCancel(w.T.Context())
	defer stop()
	var bystanders sync.WaitGroup
	bystanders.Go(func() {
		for r.read(ctx, "admin", r.admin.Client); pause(ctx, p.tempo.reads); {
			r.read(ctx, "admin", r.admin.Client)
		}
	})
	if p.watched {
		host := w.Host("observer")
		bystanders.Go(func() { r.observe(ctx, host) })
		bystanders.Go(func() { r.disturb(ctx, host) })
	}
	begun := w.Now()
	for i, m := range p.members {
		name := fmt.Sprintf("p%d", i+1)
		r.join(name, name, m.joins, false)
	}
	for i, s := range p.steps {
		time.Sleep(begun + s.at - w.Now())
		r.next = p.ttl
		if i+1 < len(p.steps) {
			r.next = begun + p.steps[i+1].at - w.Now()
		}
		r.step(s)
	}
	if p.unhurried {
		time.Sleep(begun + p.over() - w.Now())
	}
	r.calm.Store(true)
	r.heal()
	close(r.healed)
	r.asking.Wait()
	time.Sleep(2*r.ttl + p.tempo.settle) // leases expire, sessions are opened, back-offs end
	r.settled()
	stop()
	bystanders.Wait()
	return r.end()
}

// step does one step of the plan.
func (r *run) step(s step) {
	f := of(s.verb)
	target := "the server"
	p := r.target(s)
	if f.do != nil {
		if target = "no target"; p != nil {
			target = p.name
		}
	}
	s.at = r.world.Now()
	r.note("%v -> %s", s, target)
	switch {
	case f.ofServer != nil:
		f.ofServer(r, s)
	case p != nil:
		f.do(r, p, s)
	}
}

// target picks the target of a step, among the participants that live.
func (r *run) target(s step) *participant {
	q := r.queue()
	switch {
	case s.role == theLeader && len(q) > 0:
		return r.owner(q[0].Key)
	case s.role == aWaiter && len(q) > 1:
		return r.owner(q[1+s.pick%(len(q)-1)].Key)
	}
	alive := slices.DeleteFunc(r.allParticipants(), func(p *participant) bool {
		started, lives, _ := p.state()
		return p.dead() || started && !lives
	})
	if len(alive) == 0 {
		return nil
	}
	return alive[s.pick%len(alive)]
}

// join starts a new participant after a while. The process of a node has its id.
func (r *run) join(name, id string, after time.Duration, takesOver bool) {
	host := r.world.Host(name) // which takes time while the server is down
	r.mu.Lock()
	n := len(r.participants) + 1
	p := &participant{
		run: r, member: r.members[n%len(r.members)], name: name, id: id, takesOver: takesOver, host: host,
		rng: rand.New(rand.NewPCG(r.seed, uint64(n))),
	}
	p.clock = newClock(p.temper.rate)
	p.host.Settle(p.trip)
	r.participants = append(r.participants, p)
	r.mu.Unlock()
	life := r.world.T.Context()
	if after == 0 {
		p.begin(life)
		return
	}
	time.AfterFunc(after, func() { p.begin(life) })
}

// allParticipants returns all participants so far.
func (r *run) allParticipants() []*participant {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.participants)
}

// queue returns the candidates' keys as they are in the store, oldest first.
func (r *run) queue() []oracle.Change {
	var q []oracle.Change
	for _, c := range r.world.Server.Tap.Live(prefix, electionName+"0") {
		q = append(q, c)
	}
	sort.Slice(q, func(i, j int) bool { return q[i].Create < q[j].Create })
	return q
}

// owner returns the participant whose key it is, or nil.
func (r *run) owner(key string) *participant {
	for _, p := range r.allParticipants() {
		if _, _, lease := p.state(); lease == oracle.LeaseOf(key) {
			return p
		}
	}
	return nil
}

// well reports whether the participant's connection to the server has had no fault for some time,
// and none is armed.
func (r *run) well(p *participant) bool {
	now, sofar := r.world.Now(), oracle.History{Events: r.log.Events()}
	return !p.host.Armed() && p.halted() == nil && !sofar.Troubled(p.name, now, now)
}

// bother records that something is wrong with the participant, or, for nil, with the server, for a
// while.
func (r *run) bother(p *participant, d time.Duration) {
	e := oracle.Event{Kind: oracle.Trouble, Until: r.world.Now() + d}
	if p != nil {
		e.Who = p.name
	}
	r.log.Add(e)
}

// later calls f after a while, unless everything has healed by then.
func (r *run) later(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		if !r.calm.Load() {
			f()
		}
	})
}

// endsAfter ends a fault after a while, unless everything heals before, and counts it if its effect
// has grown meanwhile: a cut that affected nothing does not count.
func (r *run) endsAfter(d time.Duration, name string, effect func() int, end func()) {
	before := effect()
	judge := sync.OnceFunc(func() { r.count(name, effect() > before) })
	r.later(d, func() {
		end()
		judge()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, judge)
}

// count counts what took effect.
func (r *run) count(name string, took bool) {
	if took {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.struck[name]++
	}
}

// note adds a line for readers of the log.
func (r *run) note(format string, args ...any) {
	r.log.Add(oracle.Event{Kind: oracle.Fault, Text: fmt.Sprintf(format, args...)})
}

func (r *run) violated(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, oracle.Violation{Invariant: "status", At: r.world.Now(), Text: fmt.Sprintf(format, args...)})
}

// rng returns the random source for the time of a step.
func (r *run) rng(s step) *rand.Rand { return rand.New(rand.NewPCG(r.seed, uint64(s.at))) }

// heal ends all faults.
func (r *run) heal() {
	require.NoError(r.world.T, r.world.Server.Start())
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	for _, judge := range open {
		judge()
	}
	r.space()
	require.False(r.world.T, r.owed)
	for _, p := range r.allParticipants() {
		p.host.Forget()
		p.goOn(true)
		p.host.Starve(0, nil)
		p.host.Heal()
		p.host.Hurry()
	}
	r.log.Add(oracle.Event{Kind: oracle.Healed, Text: "everything heals"})
}

// settled reports whose keys exist when all has settled; by then an observer must have the first of them.
func (r *run) settled() {
	now := oracle.Event{Kind: oracle.Queue, Until: r.world.Now()}
	first := oracle.Event{Kind: oracle.Settled}
	for i, k := range r.queue() {
		if now.Keys = append(now.Keys, k.Key); i == 0 {
			first.Token = k.Create
		}
	}
	r.log.Add(now)
	r.log.Add(oracle.Event{Kind: oracle.Quiet})
	if r.watched {
		r.log.Add(first)
	}
	r.followed()
}

// end makes all participants leave, looks for leftovers, and judges the history.
func (r *run) end() *result {
	for _, p := range r.allParticipants() {
		p.leave()
	}
	time.Sleep(time.Second) // until the tap has received the last changes
	left := func(format string, args ...any) {
		r.log.Add(oracle.Event{Kind: oracle.Left, Text: fmt.Sprintf(format, args...)})
	}
	for _, keys := range [][2]string{{prefix, electionName + "0"}, {mailboxes, mailboxesEnd}, {beats, beatsEnd}} {
		for key := range r.world.Server.Tap.Live(keys[0], keys[1]) {
			left("key %s", key)
		}
	}
	leases, err := r.admin.Client.Leases(r.world.T.Context())
	require.NoError(r.world.T, err)
	for _, l := range leases.Leases {
		left("lease %x", int64(l.ID))
	}
	h := r.history()
	out := &result{plan: r.plan, history: h, violations: append(h.Check(), r.wrong...), virtual: r.world.Now(), tally: h.Tally()}
	r.mu.Lock()
	out.struck = r.struck // counting has ended
	r.mu.Unlock()
	r.proofs()
	return out
}

func (r *run) history() *oracle.History {
	changes, complete := r.world.Server.Tap.Changes()
	require.True(r.world.T, complete, "INVALID: the tap was overtaken by a compaction")
	changes = slices.DeleteFunc(changes, func(c oracle.Change) bool { return strings.HasPrefix(c.Key, beats) })
	return &oracle.History{
		// A server that restarts gives every lease another TTL, and needs an election of its own.
		About: oracle.About{
			Prefix: prefix, Data: dataKey, TTL: r.ttl,
			Recovery: r.ttl + 3*time.Second + 20*r.tempo.tick,
		},
		Events: r.log.Events(), Changes: changes,
	}
}

// read makes one linearizable read of the data key and reports it, if it succeeds.
func (r *run) read(ctx context.Context, who string, client clientv3.KV) {
	once, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	asked := r.world.Now()
	resp, err := client.Get(once, dataKey)
	if err != nil {
		return
	}
	name := ""
	if len(resp.Kvs) > 0 {
		if name, err = oracle.ReadValue(string(resp.Kvs[0].Value)); err != nil {
			name = string(resp.Kvs[0].Value) // no participant wrote it, which the checker reports
		}
	}
	r.log.Add(oracle.Event{Who: who, Kind: oracle.Read, Write: name, At: asked, Until: r.world.Now()})
}

// observe reports every state of an observer on a host of its own, until ctx ends.
func (r *run) observe(ctx context.Context, host *rig.Host) {
	o, err := observe.New(observe.Config{Election: electionName, KV: host.Client, Watcher: host.Client})
	require.NoError(r.world.T, err)
	defer o.Close()
	reader := o.Subscribe()
	for {
		state, err := reader.Next(ctx)
		if err != nil {
			return
		}
		e := oracle.Event{
			Kind: oracle.Observed, Who: host.Name, Text: state.Kind.String(), Commit: state.Revision,
			Token: int64(state.Leader.Token), Key: state.Leader.Key, Lease: state.Leader.Lease,
		}
		if state.Reason != nil {
			e.Reason = state.Reason.Error()
		}
		r.log.Add(e)
	}
}

// disturb cuts, delays and resets the observer's network at random, as long as other faults occur.
func (r *run) disturb(ctx context.Context, host *rig.Host) {
	rng := rand.New(rand.NewPCG(r.seed, 0x736565))
	for pause(ctx, between(rng, 500*time.Millisecond, 6*time.Second)) && !r.calm.Load() {
		switch rng.IntN(3) {
		case 0:
			host.Cut(anyWay(rng))
		case 1:
			host.Delay(rig.In, between(rng, 0, 3*time.Second))
		case 2:
			host.Reset()
		}
		pause(ctx, between(rng, 0, 12*time.Second))
		host.Heal()
	}
}

// pause waits for d, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
