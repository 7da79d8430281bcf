package participant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/keeper"
	"github.com/eldest-io/eldest/lease"
)

// Config is the first value that a participant reads.
type Config struct {
	// Who is the participant's name, of this process only.
	Who string `json:"who"`
	// Contender is the name of a contender of bench/contender.
	Contender string        `json:"contender"`
	Election  string        `json:"election"`
	Endpoints []string      `json:"endpoints"`
	TTL       time.Duration `json:"ttl"`
	// Data is the key that leaders write.
	Data string `json:"data"`
	// Beat is the timeout of its heartbeats; 0 means none. Keeper means that it has a keeper.
	Beat   time.Duration `json:"beat,omitempty"`
	Keeper bool          `json:"keeper,omitempty"`
	// Tight means that it has next to no margin; see tighten.
	Tight bool `json:"tight,omitempty"`
	// Without is one of Rules: it does not follow this rule. Empty: it follows all.
	Without string `json:"without,omitempty"`
	// Calm, if it is not 0, is for a participant that people watch: see calm.go. It is the time
	// between two writes of a leader.
	Calm time.Duration `json:"calm,omitempty"`
}

// Orders that a participant can receive.
const (
	// DoRate sets the rate of its clock. A Fault event with RateText reports that the election has
	// read the clock, and at which rate it ran.
	DoRate = "rate"
	// DoResign makes it resign, or leave the queue, and campaign again.
	DoResign = "resign"
	// DoQuit ends it. It reports what is left of it as Left events.
	DoQuit = "quit"
)

// Order is what a participant reads after its Config.
type Order struct {
	Do   string  `json:"do"`
	Rate float64 `json:"rate,omitempty"`
}

// RateText is the text of the event that reports the rate of a clock.
func RateText(rate float64) string { return fmt.Sprintf("its clock runs at a rate of %.3f", rate) }

// Line is a line that a participant writes: first that it is up, with the process ID of its keeper,
// if it has one; then events, whose instants are lease.Boot's, tokens that it offers to the store
// outside etcd, and the phase of its candidate.
type Line struct {
	Up     bool          `json:"up,omitempty"`
	Keeper int           `json:"keeper,omitempty"`
	Event  *oracle.Event `json:"event,omitempty"`
	Offer  int64         `json:"offer,omitempty"`
	Phase  string        `json:"phase,omitempty"`
}

// participant campaigns, leads, works, and begins again.
type participant struct {
	Config
	client *clientv3.Client
	clock  *clock
	keeper *keeper.Keeper // nil if it has none
	out    *oracle.Recorder
	lines  io.Writer // the same output, for lines that are no events

	life context.Context
	end  context.CancelFunc
	// leave has one element when it must leave its candidacy or tenure, or the next one.
	leave chan struct{}

	writes  atomic.Int64   // sent so far
	patient sync.WaitGroup // writes that may outlive their tenure

	// phases are those of the present session's candidate; nil if they are not reported. Only run
	// changes the field.
	phases *phases
	// serving are goroutines that end with their session or its candidate.
	serving sync.WaitGroup
	// resigns means that the participant itself ends its present tenure.
	resigns atomic.Bool
}

// Run does the whole work of a participant's process. It blocks until it is ordered to quit. At the
// end of in, which happens when its supervisor ends, it ends the process at once.
func Run(in io.Reader, out io.Writer) error {
	p := &participant{clock: newClock(), out: oracle.NewRecorder(out, lease.Boot().Now), lines: out, leave: make(chan struct{}, 1)}
	orders := json.NewDecoder(in)
	if err := orders.Decode(&p.Config); err != nil {
		return fmt.Errorf("the participant's config: %w", err)
	}
	if p.Without != "" && !slices.Contains(Rules, p.Without) {
		return fmt.Errorf("the participant's config: unknown rule %q", p.Without)
	}
	of, err := p.contender()
	if err != nil {
		return fmt.Errorf("the participant's config: %w", err)
	}
	if p.Without == Clock {
		p.clock.run(slow)
	}
	p.life, p.end = context.WithCancel(context.Background())
	defer p.end()
	before := runtime.NumGoroutine()
	if p.client, err = dial(p.Endpoints, p.Who); err != nil {
		return err
	}
	if err := p.up(); err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { p.run(of) })
	if p.Calm == 0 {
		all.Go(p.look)
	}
	p.obey(orders)
	p.end()
	all.Wait()
	p.patient.Wait()
	p.serving.Wait()
	left := watches()
	err = errors.Join(p.endKeeper(), p.client.Close())
	for _, text := range append(left, goroutines(before)...) {
		p.tell(oracle.Event{Kind: oracle.Left, Text: p.Who + ": " + text})
	}
	return err
}

// up starts the keeper, if it is configured, and reports that the participant is up. The keeper reaches
// etcd as the participant does: the main of each keeper process calls keeper.Serve with connect.Kept.
func (p *participant) up() error {
	up := Line{Up: true}
	if p.Keeper {
		with, err := json.Marshal(&connect.Flags{Endpoints: p.Endpoints, DialTimeout: time.Second, CommandTimeout: time.Second})
		if err != nil {
			return err
		}
		if p.keeper, err = keeper.Start(p.life, with); err != nil {
			return err
		}
		up.Keeper = p.keeper.Pid()
	}
	return json.NewEncoder(p.lines).Encode(up)
}

func (p *participant) endKeeper() error {
	if p.keeper == nil || p.keeper.Err() != nil { // a fault has killed it
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), partingTime)
	defer cancel()
	return p.keeper.Close(ctx)
}

// obey carries out orders until the one to quit.
func (p *participant) obey(orders *json.Decoder) {
	for {
		var o Order
		if err := orders.Decode(&o); err != nil {
			os.Exit(0)
		}
		switch o.Do {
		case DoQuit:
			p.tell(oracle.Event{Kind: oracle.Leaving})
			return
		case DoResign:
			select {
			case p.leave <- struct{}{}:
			default: // an earlier order is still pending
			}
		case DoRate:
			p.clock.run(o.Rate)
			go p.showRate(o.Rate)
		}
	}
}

// rateShown is how long a clock runs before its rate is measured.
const rateShown = 20 * time.Millisecond

// showRate reports the rate of the clock when the election has read the clock, which it does at the
// next renewal at the latest.
func (p *participant) showRate(rate float64) {
	for p.pause(p.life, rateShown, rateShown) {
		switch ran := p.clock.ran(); {
		case ran == 0:
			continue
		case math.Abs(ran-rate) < 0.001:
			p.tell(oracle.Event{Kind: oracle.Fault, Text: RateText(rate)})
		default:
			p.tell(oracle.Event{Kind: oracle.Fault, Text: RateText(ran)})
		}
		return
	}
}

// run opens session after session, and campaigns in each one again and again, or only once if the
// contender cannot campaign again: see the documentation of package contender.
func (p *participant) run(of contender.Contender) {
	once := of.Name() == contender.Herd || of.Name() == contender.Floor
	for p.life.Err() == nil {
		s, c, err := p.open(of)
		if err != nil {
			p.pause(p.life, 50*time.Millisecond, 150*time.Millisecond)
			continue
		}
		for p.life.Err() == nil && s.Usable() {
			err := p.campaign(s, c)
			p.pause(p.life, 0, 50*time.Millisecond)
			if once || p.Calm > 0 && isLeaseGone(err) {
				break
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), p.TTL)
		_ = s.Close(ctx) // what is left then expires with the lease
		cancel()
	}
}

func (p *participant) open(of contender.Contender) (contender.Session, contender.Candidate, error) {
	ctx, cancel := context.WithTimeout(p.life, 2*p.TTL)
	defer cancel()
	s, err := of.Open(ctx, p.client, p.TTL)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Candidate(p.Election, p.Who)
	if err != nil {
		s.Abandon()
	}
	return s, c, err
}

// contender returns the election under test. Eldest's reads the participant's clock and reports the
// revision of each winning proof.
func (p *participant) contender() (contender.Contender, error) {
	of, err := contender.Named(p.Contender)
	ours, ok := of.(contender.Ours)
	if !ok || err != nil {
		return of, err
	}
	ours.Lease = func(cfg *lease.Config) {
		if p.Without != GivenClock {
			cfg.Clock = p.clock // else the machine's
		}
		cfg.Keeper, cfg.Heartbeat.Timeout = p.keeper, p.Beat
		if p.Tight {
			tighten(cfg)
		}
		if p.Without == Majority {
			cfg.Majority = lease.Unconfirmed{}
		}
	}
	ours.Election = func(cfg *election.Config) {
		cfg.Hooks.Won = func(e election.WonEvent) {
			p.tell(oracle.Event{Kind: oracle.Proven, Token: int64(e.Token), Proof: e.Revision})
		}
		cfg.Hooks.Evicted = func(e election.EvictedEvent) {
			p.tell(oracle.Event{Kind: oracle.Evicted, Token: int64(e.Evicted.Token), Key: e.Evicted.Key})
		}
		if p.Calm > 0 {
			p.phases = newPhases(p.showPhase)
			cfg.Hooks.Registered, cfg.Hooks.Waiting = p.phases.registered, p.phases.waiting
		}
	}
	ours.Made = p.made
	return ours, nil
}

// tighten removes what hides faults. The default margin covers an error of up to a tenth of the TTL, or of
// 200 ms, and the short timeout of a renewal covers the whole delay of a slow reply; without them the
// deadline itself must be correct, to the millisecond. That requires a perfect clock. The margin of
// heartbeats also covers the clocks of others, which are wrong by less than a tenth.
func tighten(cfg *lease.Config) {
	cfg.Margin = time.Millisecond
	cfg.Heartbeat.Margin = cfg.Heartbeat.Timeout / 10
	cfg.Renewal = func(granted time.Duration) lease.Renewal {
		r := lease.DefaultRenewal(granted)
		r.Timeout = granted * 6 / 10
		return r
	}
}

// campaign campaigns once, leads if it wins, and leads again after each suspension of the tenure. It
// returns the error of the campaign.
func (p *participant) campaign(s contender.Session, c contender.Candidate) error {
	joins := func() { p.tell(oracle.Event{Kind: oracle.Joined, Lease: int64(s.Lease()), Beat: p.Beat}) }
	joins()
	p.phases.intend(entering)
	defer p.phases.intend(idle)
	t, err := p.await(c.Campaign)
	if err != nil {
		p.tell(oracle.Event{Kind: oracle.Failed, Lost: !s.Usable(), Text: err.Error()})
		return err
	}
	won := oracle.Won
	for {
		token := t.Token()
		p.tell(oracle.Event{Kind: won, Token: token, Key: t.Key()})
		p.phases.intend(idle) // once the tenure is over
		p.resigns.Store(false)
		suspended := p.lead(s, p.defective(t))
		if !suspended {
			p.spoil()
			return nil
		}
		if t, err = p.await(c.(resumer).Resume); err != nil {
			p.tell(oracle.Event{Kind: oracle.Ended, Token: token, Lost: !s.Usable(), Text: err.Error()})
			return err
		}
		won = oracle.Resumed
		if t.Token() != token { // its key had been deleted when it campaigned: this is another tenure
			p.tell(oracle.Event{Kind: oracle.Ended, Token: token, Text: "its key was deleted while it was suspended"})
			joins()
			won = oracle.Won
		}
	}
}

// resumer is a candidate whose tenures can be suspended.
type resumer interface {
	Resume(ctx context.Context) (contender.Tenure, error)
}

// await waits until the campaign is won, or the participant must leave.
func (p *participant) await(campaign func(context.Context) (contender.Tenure, error)) (contender.Tenure, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case <-p.leave:
			p.tell(oracle.Event{Kind: oracle.Leaving})
		case <-p.life.Done(): // obey has told it
		case <-over:
			return
		}
		p.phases.intend(leaving) // before the candidate leaves
		cancel()
	})
	t, err := campaign(ctx)
	close(over)
	listening.Wait()
	return t, err
}

// tell writes an event. If it cannot be written the process ends, as no event may be lost.
func (p *participant) tell(e oracle.Event) {
	e.Who = p.Who
	if err := p.out.Add(e); err != nil {
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

// pause blocks for a random time between least and most, or until ctx ends, and reports whether the
// time passed before ctx ended.
func (p *participant) pause(ctx context.Context, least, most time.Duration) bool {
	select {
	case <-time.After(least + rand.N(most-least+1)):
		return true
	case <-ctx.Done():
		return false
	}
}

// dial makes a client as a careful application does, for all contenders alike: it reconnects within
// half a second to a member that was unavailable, not within up to two minutes. who is its name in
// the records of a proxy.
func dial(endpoints []string, who string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialKeepAliveTime:    10 * time.Second, // gRPC's minimum
		DialKeepAliveTimeout: time.Second,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithUserAgent(who), grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		})},
	})
}

const (
	// partingTime is how long goroutines may take to end after everything was closed.
	partingTime = 3 * time.Second
	// mostText bounds the text about goroutines that are left.
	mostText = 16 << 10
)

// watcher is the goroutine that etcd's client has for each watch. (The goroutine of a stream
// sometimes outlives the last watch in it: in one departure of some hundred.)
const watcher = "client/v3.(*watchGRPCStream).serveSubstream"

// watches reports watches that are still open after everything that could need one has ended. It is
// called while the client is open: closing a client ends all its watches, also forgotten ones.
func watches() []string {
	return left("a watch: ", func() bool { return !strings.Contains(stacks(), watcher) })
}

// goroutines reports by their stacks that there are more goroutines than before.
func goroutines(before int) []string {
	return left("goroutines: ", func() bool { return runtime.NumGoroutine() <= before })
}

// left waits until gone returns true, and returns the goroutines' stacks if it does not in time.
func left(what string, gone func() bool) []string {
	for deadline := time.Now().Add(partingTime); !gone(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			text := stacks()
			return []string{what + text[:min(len(text), mostText)]}
		}
	}
	return nil
}

func stacks() string {
	var text strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&text, 1) // a Builder never fails
	return text.String()
}
