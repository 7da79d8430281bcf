package actor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/eldest-io/eldest/bench/contender"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/fence"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/lease"
)

// actor is a participant: it campaigns, leads, works, and begins again.
type actor struct {
	cfg    Config
	client *clientv3.Client
	clock  *clock
	log    *oracle.Recorder
	speak  *speaker
	of     contender.Contender

	life context.Context
	kill context.CancelFunc

	mu       sync.Mutex
	withdraw context.CancelFunc // ends the campaign that runs, nil: none
	giveUp   chan struct{}      // closed: resign; nil: no tenure
	over     chan struct{}      // closed when the candidacy or tenure that runs is over

	writes  atomic.Int64   // sent so far
	patient sync.WaitGroup // writes that are waited for longer than their tenure lasts
}

// Run is all that a participant's process does. It blocks until it is told to quit, and
// ends the process at the end of in, in the middle of whatever goes on.
func Run(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	text, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the participant's config: %w", err)
	}
	var cfg Config
	if err := json.Unmarshal(text, &cfg); err != nil {
		return fmt.Errorf("the participant's config: %w", err)
	}
	of, err := contender.Named(cfg.Contender)
	if err != nil {
		return fmt.Errorf("the participant's config: %w", err)
	}
	file, err := os.OpenFile(cfg.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // each line is written at once
	a := &actor{cfg: cfg, clock: newClock(cfg.Clock), speak: newSpeaker(out), of: of}
	a.log = oracle.NewRecorder(file, a.clock.real.Now)
	a.life, a.kill = context.WithCancel(context.Background())
	defer a.kill()
	before := census()
	if a.client, err = dial(cfg.Endpoints); err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(a.run)
	all.Go(a.look)
	seq := a.obey(lines)
	a.kill()
	all.Wait()
	a.patient.Wait()
	watches := watching()
	err = a.client.Close()
	a.speak.say(Line{Answer: &Answer{Seq: seq, Left: append(watches, before.left()...)}})
	return err
}

// obey carries out orders until the one to quit, and returns its number.
func (a *actor) obey(lines *bufio.Reader) (seq int) {
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(0) // whoever gave the orders is dead
		}
		var o Order
		if err := json.Unmarshal(text, &o); err != nil {
			a.speak.say(Line{Answer: &Answer{Seq: o.Seq, Err: err.Error()}})
			continue
		}
		switch o.Do {
		case DoQuit:
			a.tell(oracle.Event{Kind: oracle.Leaving})
			return o.Seq
		case DoRate:
			a.speak.say(Line{Answer: &Answer{Seq: o.Seq, Ran: a.clock.run(o.Rate)}})
		case DoResign:
			over := a.leave()
			go func() { // the next order need not wait for it
				<-over
				a.speak.say(Line{Answer: &Answer{Seq: o.Seq}})
			}()
		default:
			a.speak.say(Line{Answer: &Answer{Seq: o.Seq, Err: "no such order: " + o.Do}})
		}
	}
}

// leave ends the tenure or the campaign that runs, and returns what is closed when that
// is over.
func (a *actor) leave() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.giveUp != nil:
		close(a.giveUp)
		a.giveUp = nil
	case a.withdraw != nil:
		a.tell(oracle.Event{Kind: oracle.Leaving})
		a.withdraw()
		a.withdraw = nil
	default: // it is between two
		over := make(chan struct{})
		close(over)
		return over
	}
	return a.over
}

// run is the participant's life: session after session, campaign after campaign.
func (a *actor) run() {
	for a.life.Err() == nil {
		a.speak.say(Line{Notice: &Notice{Standing: Idle}})
		s, c, err := a.session()
		if err != nil {
			a.rest(50*time.Millisecond, 150*time.Millisecond)
			continue
		}
		for a.life.Err() == nil && s.Usable() {
			a.campaign(s, c)
			a.rest(0, 50*time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(context.Background(), a.cfg.TTL)
		_ = s.Close(ctx) // what is left then goes with the lease
		cancel()
	}
}

func (a *actor) session() (contender.Session, contender.Candidate, error) {
	ctx, cancel := context.WithTimeout(a.life, 2*a.cfg.TTL)
	defer cancel()
	s, err := a.contender().Open(ctx, a.client, a.cfg.TTL)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.Candidate(a.cfg.Election, a.cfg.Who)
	if err != nil {
		s.Abandon()
	}
	return s, c, err
}

// contender is whose election is tried. Ours reads the participant's clock and tells of the
// revision of each winning proof.
func (a *actor) contender() contender.Contender {
	ours, ok := a.of.(contender.Ours)
	if !ok {
		return a.of
	}
	ours.Lease = func(cfg *lease.Config) {
		if a.cfg.Defect != Perfect {
			cfg.Clock = a.clock // else the machine's
		}
		if a.cfg.Tight {
			tighten(cfg)
		}
	}
	ours.Election = func(cfg *election.Config) {
		cfg.Hooks.Won = func(e election.WonEvent) {
			a.tell(oracle.Event{Kind: oracle.Proven, Token: int64(e.Token), Proof: e.Revision})
		}
	}
	return ours
}

// tighten takes away what hides faults. The default margin covers an error of up to a tenth
// of the TTL, or of 200 ms, and the short time-out of a renewal all of a slow reply; without
// them the deadline itself has to be right, to the millisecond. A perfect clock is all that
// it takes.
func tighten(cfg *lease.Config) {
	cfg.Margin = time.Millisecond
	cfg.Renewal = func(granted time.Duration) lease.Renewal {
		r := lease.DefaultRenewal(granted)
		r.Timeout = granted * 6 / 10
		return r
	}
}

// campaign stands once, and leads if it wins.
func (a *actor) campaign(s contender.Session, c contender.Candidate) {
	id := int64(s.Lease())
	ctx, cancel := context.WithCancel(a.life)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	a.set(func() { a.withdraw, a.over = cancel, over })
	a.tell(oracle.Event{Kind: oracle.Joined, Lease: id})
	a.speak.say(Line{Notice: &Notice{Standing: Waiting, Lease: id}})
	t, err := c.Campaign(ctx)
	if err != nil {
		a.set(func() { a.withdraw = nil })
		a.tell(oracle.Event{Kind: oracle.Failed, Lost: !s.Usable(), Text: err.Error()})
		a.speak.say(Line{Notice: &Notice{Standing: Idle}})
		return
	}
	a.tell(oracle.Event{Kind: oracle.Won, Token: t.Token(), Key: t.Key()})
	giveUp := make(chan struct{})
	a.set(func() { a.withdraw, a.giveUp = nil, giveUp })
	a.speak.say(Line{Notice: &Notice{Standing: Leading, Lease: id, Token: t.Token(), Key: t.Key()}})
	a.lead(s, defective(t, a.cfg.Defect, a.client, a.cfg.TTL), giveUp)
	if a.cfg.Defect == Forget {
		forget(a.client, a.cfg.Election)
	}
	if a.cfg.Defect == Linger {
		linger(a.client, a.cfg.Election)
	}
}

// tell files an event. What cannot be filed did not happen to anybody: the process ends.
func (a *actor) tell(e oracle.Event) {
	e.Who = a.cfg.Who
	if err := a.log.Add(e); err != nil {
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

func (a *actor) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// rest waits for a moment between least and most, or the end of the life.
func (a *actor) rest(least, most time.Duration) {
	timer := time.NewTimer(least + rand.N(most-least+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.life.Done():
	}
}

// dial makes a client as a careful program does, for both contenders alike: one that comes
// back to a member that was away within half a second, not in up to two minutes.
func dial(endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints:            endpoints,
		DialKeepAliveTime:    10 * time.Second, // gRPC takes no less
		DialKeepAliveTimeout: time.Second,
		Logger:               zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: time.Second,
		})},
	})
}

// store is a client of the fenced store.
func (a *actor) store() *fence.Client { return fence.Dial(a.cfg.Store) }
