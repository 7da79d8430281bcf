package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// Participate is the main function of a participant's process: it reads commands, one JSON object a
// line, from in, and writes answers and events to out. all are the systems that there are. It
// blocks until in ends, and then ends everything that it has started.
func Participate(ctx context.Context, all []peer.System, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writing, cease := context.WithCancel(ctx)
	defer cease()
	p := &host{ctx: ctx, writing: writing, cease: cease, systems: all, out: json.NewEncoder(out), net: NewNetwork()}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	var broken error
	for lines.Scan() {
		var r request
		if broken = json.Unmarshal(lines.Bytes(), &r); broken != nil {
			break
		}
		p.work.Go(func() {
			answer, err := p.do(r)
			answer.ID = r.ID
			p.say(answer.fail(err))
		})
	}
	cancel()
	healed := p.net.Heal() // otherwise nothing can be closed in an orderly way
	p.work.Wait()
	return errors.Join(broken, lines.Err(), healed, p.close())
}

// host is a participant: a client, a network and what uses them.
type host struct {
	ctx     context.Context
	writing context.Context // ended by cease: no entry is appended any more
	cease   context.CancelFunc
	systems []peer.System
	net     *Network
	work    sync.WaitGroup // requests, campaigns and what follows

	saying sync.Mutex
	out    *json.Encoder

	mu     sync.Mutex
	client peer.Client // nil before doOpen
	id     string
	crowd  *crowd
	tenure *tenure // nil before the win
}

// say writes a line.
func (p *host) say(r reply) {
	p.saying.Lock()
	defer p.saying.Unlock()
	_ = p.out.Encode(r) // if nobody reads it, stdin ends, too
}

// event reports what has happened just now.
func (p *host) event(name string, err error) {
	p.say(reply{Event: name, At: nanos(time.Now())}.fail(err))
}

// do does what a request asks for.
func (p *host) do(r request) (reply, error) {
	if r.Do == doOpen {
		return reply{}, p.open(r.Open)
	}
	p.mu.Lock()
	client, tenure, crowd := p.client, p.tenure, p.crowd
	p.mu.Unlock()
	if client == nil {
		return reply{}, fmt.Errorf("%s: no client is open", r.Do)
	}
	switch r.Do {
	case doCampaign:
		p.campaign(client, r.Append)
		return reply{}, nil
	case doCease:
		p.cease()
		return reply{}, nil
	case doCut:
		return reply{At: nanos(time.Now())}, p.net.Cut()
	case doHeal:
		return reply{At: nanos(time.Now())}, p.net.Heal()
	case doLog:
		log, err := client.Log(p.ctx)
		return reply{Log: stretches(log)}, err
	case doGuards:
		if guarded, ok := client.(peer.Guarded); ok {
			return reply{Guards: guarded.Guards()}, nil
		}
		return reply{}, nil
	case doCounts:
		writes, bytes := p.net.Counts()
		return reply{Writes: writes, Bytes: bytes}, nil
	case doObserve:
		observer, ok := client.(peer.Observer)
		if !ok {
			return reply{}, fmt.Errorf("observers: %w", errors.ErrUnsupported)
		}
		p.observe(observer, r.N)
		return reply{}, nil
	case doJoin:
		took, err := p.join(client, r.N)
		return reply{Took: took}, err
	case doMemory:
		each, err := p.memory(client, r.N)
		return reply{N: each}, err
	case doTold:
		if crowd == nil {
			return reply{}, errors.New("there are no observers")
		}
		at, err := crowd.await(p.ctx, r.Name)
		return reply{At: nanos(at)}, err
	}
	if tenure == nil {
		return reply{}, fmt.Errorf("%s: the candidate has not won", r.Do)
	}
	switch r.Do {
	case doAppend:
		tenure.appendEntries()
		return reply{}, nil
	case doResign:
		return reply{At: nanos(tenure.resign())}, nil
	case doHeld:
		return reply{At: tenure.held.Load()}, nil
	case doAccepted:
		at, err := tenure.accepted.await(p.ctx, timeOf(r.At))
		return reply{At: nanos(at)}, err
	}
	return reply{}, fmt.Errorf("no command %q", r.Do)
}

func (p *host) open(o *opening) error {
	i := slices.IndexFunc(p.systems, func(s peer.System) bool { return s.Name == o.System })
	if i < 0 {
		return fmt.Errorf("no system %q", o.System)
	}
	ctx, cancel := context.WithTimeout(p.ctx, settingUp)
	defer cancel()
	client, err := p.systems[i].Dial(ctx, peer.ClientConfig{
		Setting: o.Setting, Endpoints: o.Endpoints, Election: o.Election, ID: o.ID, Index: o.Index, Net: p.net,
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client, p.id = client, o.ID
	return nil
}

// close closes the client and its network.
func (p *host) close() (err error) {
	p.mu.Lock()
	client := p.client
	p.mu.Unlock()
	if client != nil {
		err = client.Close()
	}
	p.net.Close()
	return err
}
