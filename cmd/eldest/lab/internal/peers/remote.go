package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

// lastWords is how long the end of a process whose stdin is closed may take to be known.
const lastWords = 200 * time.Millisecond

// leaving is how long a participant may take to end in an orderly way, before it is killed.
const leaving = 15 * time.Second

// errEnded is returned for requests to a participant whose process has ended.
var errEnded = errors.New("the participant's process has ended")

// participant is a participant's process, as the run sees it; see Participate. Its methods may be called
// from many goroutines.
type participant struct {
	id      string
	process *offspring.Process
	stdin   io.WriteCloser
	ended   chan struct{}
	dead    bool // it has failed with its machine; of the turn

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan reply
	events  map[string]reply // the first of each name
	changed chan struct{}    // closed at each event
}

// startParticipant starts a process.
func startParticipant(spawner *offspring.Spawner, command []string, id string) (*participant, error) {
	cmd := exec.Command(command[0], command[1:]...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p := &participant{
		id: id, stdin: stdin, ended: make(chan struct{}),
		waiting: map[int64]chan reply{}, events: map[string]reply{}, changed: make(chan struct{}),
	}
	p.process, err = spawner.Launch(cmd, p.hear, func(*offspring.Process) { close(p.ended) })
	return p, err
}

// hear reads a line of the process.
func (p *participant) hear(line []byte) {
	var r reply
	if json.Unmarshal(line, &r) != nil {
		return // a library has printed something
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Event != "" {
		if _, again := p.events[r.Event]; !again {
			p.events[r.Event] = r
			close(p.changed)
			p.changed = make(chan struct{})
		}
		return
	}
	if answer := p.waiting[r.ID]; answer != nil {
		delete(p.waiting, r.ID)
		answer <- r
	}
}

// call sends a request and blocks until it is answered, the process ends or ctx does.
func (p *participant) call(ctx context.Context, r request) (reply, error) {
	answer := make(chan reply, 1)
	p.mu.Lock()
	p.last++
	r.ID = p.last
	p.waiting[r.ID] = answer
	line, err := json.Marshal(r)
	if err == nil {
		_, err = p.stdin.Write(append(line, '\n')) // the pipe holds more than is ever sent to a stopped process
	}
	p.mu.Unlock()
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", r.Do, errors.Join(p.why(), err))
	}
	select {
	case a := <-answer:
		if err := a.err(); err != nil {
			return a, fmt.Errorf("%s: %w", r.Do, err)
		}
		return a, nil
	case <-p.ended:
		return reply{}, fmt.Errorf("%s: %w", r.Do, p.why())
	case <-ctx.Done():
		return reply{}, fmt.Errorf("%s: no answer: %w", r.Do, context.Cause(ctx))
	}
}

// why returns the reason for which the process has ended.
func (p *participant) why() error {
	select {
	case <-p.ended:
		code, complaint := p.process.Result()
		return fmt.Errorf("%w (exit code %d): %s", errEnded, code, complaint)
	case <-time.After(lastWords):
		return errEnded
	}
}

// heard returns an event, if it has happened.
func (p *participant) heard(event string) (reply, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.events[event]
	return r, ok
}

// await blocks until an event has happened, the campaign has failed, the process ends or ctx does.
func (p *participant) await(ctx context.Context, event string) (time.Time, error) {
	for {
		p.mu.Lock()
		r, ok := p.events[event]
		failed, broken := p.events[evFailed]
		_, leads := p.events[evWon]
		changed := p.changed
		p.mu.Unlock()
		switch {
		case ok:
			return timeOf(r.At), r.err()
		case leads && event == evQueued:
			return time.Time{}, fmt.Errorf("%s leads, although another candidate does", p.id)
		case broken:
			return time.Time{}, fmt.Errorf("the campaign of %s: %w", p.id, failed.err())
		}
		select {
		case <-changed:
		case <-p.ended:
			return time.Time{}, p.why()
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%s is not %q: %w", p.id, event, context.Cause(ctx))
		}
	}
}

// kill ends the process at once, in any state. Its guards act.
func (p *participant) kill() { p.process.End() }

// fail ends the process, and those that guard it, as a machine fails: see Machine. It returns the time just before.
func (p *participant) fail(ctx context.Context) (time.Time, error) {
	r, err := p.call(ctx, request{Do: doGuards})
	if err != nil {
		return time.Time{}, err
	}
	p.dead = true
	at := time.Now()
	for _, pid := range r.Guards {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	_, err = p.call(ctx, request{Do: doCut})
	return at, errors.Join(err, p.process.Suspend())
}

// close ends the process in an orderly way, if it can. It blocks until it has ended.
func (p *participant) close() {
	if p.dead {
		p.kill()
		return
	}
	_ = p.stdin.Close() // the process may have ended
	_ = p.process.Resume()
	select {
	case <-p.ended:
	case <-time.After(leaving):
	}
	p.process.End()
}
