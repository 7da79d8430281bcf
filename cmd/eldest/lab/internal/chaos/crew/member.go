package crew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// ErrState is returned for what a participant's state does not allow: stopping what is
// dead, continuing what runs.
var ErrState = errors.New("crew: the participant is in the wrong state for that")

// Member is one participant, over all its lives. Its methods may be called from many
// goroutines.
type Member struct {
	crew *Crew
	name string
	// Host is its network.
	Host *etcdtest.Host
	// Tight says that it leaves itself next to no margin, in all its lives: no clock of
	// it may be off.
	Tight bool

	mu      sync.Mutex
	life    int
	proc    *offspring.Process // nil: dead
	stdin   io.Writer
	stopped bool
	leaves  bool // was told to end
	now     actor.Notice
	seq     int
	waiting map[int]chan actor.Answer
	rate    float64 // of its clock
}

// Who is the name of the life that goes on, or of the last one.
func (m *Member) Who() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.who()
}

func (m *Member) who() string {
	if m.life > 1 {
		return fmt.Sprintf("%s.%d", m.name, m.life)
	}
	return m.name
}

// Stands is where it said last that it stands; the zero Notice if it is dead.
func (m *Member) Stands() actor.Notice {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil {
		return actor.Notice{}
	}
	return m.now
}

// Alive reports whether its process exists.
func (m *Member) Alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc != nil
}

// Start begins a new life. It does not wait for anything that the participant does.
func (m *Member) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc != nil {
		return fmt.Errorf("%w: start %s, which lives", ErrState, m.who())
	}
	m.life++
	cfg := m.crew.cfg.Seat
	cfg.Who, cfg.Endpoints, cfg.Tight = m.who(), m.Host.Endpoints(), m.Tight
	cfg.File = filepath.Join(m.crew.cfg.Dir, m.who()+".jsonl")
	line, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	cmd := m.crew.cfg.Command()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	life := m.life
	p, err := m.crew.cfg.Field.Spawner.Launch(cmd, func(text []byte) { m.heard(life, text) }, func(p *offspring.Process) { m.exited(life, p) })
	if err != nil {
		return fmt.Errorf("starting %s: %w", m.who(), err)
	}
	m.proc, m.stdin, m.stopped, m.now, m.rate = p, stdin, false, actor.Notice{Standing: actor.Idle}, 1
	m.waiting = make(map[int]chan actor.Answer)
	m.crew.opened(cfg.File)
	_, err = stdin.Write(append(line, '\n'))
	return err
}

// heard is told each line that a life of the process writes.
func (m *Member) heard(life int, text []byte) {
	var l actor.Line
	if json.Unmarshal(text, &l) != nil {
		return // a panic's text, perhaps; its end says the rest
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if life != m.life {
		return
	}
	if l.Notice != nil {
		m.now = *l.Notice
		m.crew.stir()
	}
	if l.Answer != nil {
		if ch := m.waiting[l.Answer.Seq]; ch != nil {
			delete(m.waiting, l.Answer.Seq)
			ch <- *l.Answer
		}
	}
}

// exited is told of the end of a process. One that nobody ended has failed.
func (m *Member) exited(life int, p *offspring.Process) {
	m.mu.Lock()
	current := life == m.life && m.proc == p
	unasked := current && !m.leaves
	if current {
		m.proc = nil
	}
	who := m.who()
	m.mu.Unlock()
	m.crew.stir()
	if unasked {
		code, complaint := p.Result()
		m.crew.fail(fmt.Errorf("participant %s ended by itself (exit code %d): %s", who, code, complaint))
	}
}

// Kill ends the process with SIGKILL and waits for it. It files Crashed.
func (m *Member) Kill() error {
	m.mu.Lock()
	p, who := m.proc, m.who()
	m.proc, m.stopped = nil, false
	m.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%w: kill %s, which is dead", ErrState, who)
	}
	p.End()
	return m.crew.cfg.Log.Add(oracle.Event{Kind: oracle.Crashed, Who: who})
}

// Stop halts the process with SIGSTOP, and returns when it stands still.
func (m *Member) Stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil || m.stopped {
		return fmt.Errorf("%w: stop %s, which does not run", ErrState, m.who())
	}
	m.stopped = true
	if err := m.proc.Suspend(); err != nil {
		return err
	}
	return m.crew.cfg.Log.Add(oracle.Event{Kind: oracle.Stopped, Who: m.who()})
}

// Continue lets a stopped process go on.
func (m *Member) Continue() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil || !m.stopped {
		return fmt.Errorf("%w: continue %s, which is not stopped", ErrState, m.who())
	}
	if still, err := etcdtest.Stopped(m.proc.Pid()); err != nil || !still {
		return fmt.Errorf("%w: %s went on by itself", ErrState, m.who())
	}
	if err := m.crew.cfg.Log.Add(oracle.Event{Kind: oracle.Continued, Who: m.who()}); err != nil {
		return err
	}
	m.stopped = false
	return m.proc.Resume()
}

// Ask sends an order and blocks until it is answered or ctx ends.
func (m *Member) Ask(ctx context.Context, o actor.Order) (actor.Answer, error) {
	ch := make(chan actor.Answer, 1)
	m.mu.Lock()
	p, who := m.proc, m.who()
	if p == nil {
		m.mu.Unlock()
		return actor.Answer{}, fmt.Errorf("%w: ask %s, which is dead", ErrState, who)
	}
	m.seq++
	o.Seq = m.seq
	m.waiting[o.Seq] = ch
	line, err := json.Marshal(o)
	if err == nil {
		_, err = m.stdin.Write(append(line, '\n'))
	}
	m.mu.Unlock()
	if err != nil {
		return actor.Answer{}, fmt.Errorf("asking %s: %w", who, err)
	}
	select {
	case a := <-ch:
		if a.Err != "" {
			return a, fmt.Errorf("%s refused: %s", who, a.Err)
		}
		return a, nil
	case <-ctx.Done():
		return actor.Answer{}, fmt.Errorf("%s does not answer: %w", who, context.Cause(ctx))
	}
}

// Quit has the process leave and end, and returns what it says is left of itself. One that
// does not end before ctx is ended, and that is what is left.
func (m *Member) Quit(ctx context.Context) []string {
	m.mu.Lock()
	p := m.proc
	m.leaves = true
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	a, err := m.Ask(ctx, actor.Order{Do: actor.DoQuit})
	p.End()
	if err != nil {
		return []string{"process: " + err.Error()}
	}
	return a.Left
}
