package crew

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/actor"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/inject"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
)

// Config says who takes part.
type Config struct {
	// Command makes the command of a participant's process.
	Command func() *exec.Cmd
	// Size is how many there are.
	Size int
	// Seat is what all of them have in common: all but Who, Endpoints, Tight and File.
	Seat actor.Config
	// Dir is where their histories go.
	Dir string
	// Field is where they are: their networks lead to its cluster.
	Field *inject.Field
	// Log takes the harness's events.
	Log *oracle.Recorder
}

// Crew is all participants. Its methods may be called from many goroutines.
type Crew struct {
	Members []*Member

	cfg Config

	mu      sync.Mutex
	files   []string
	err     error
	changed chan struct{} // closed and replaced when a standing changes
}

// Start starts all participants, every other one of them tight. The caller must Close the crew, also after an error.
func Start(cfg Config) (*Crew, error) {
	c := &Crew{cfg: cfg, changed: make(chan struct{})}
	for i := range cfg.Size {
		host, err := cfg.Field.NewHost()
		if err != nil {
			return c, err
		}
		m := &Member{crew: c, name: fmt.Sprintf("p%d", i+1), Host: host, Tight: i%2 == 1}
		c.Members = append(c.Members, m)
		if err := m.Start(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Changed is closed when any standing has changed since the call.
func (c *Crew) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Err is why a participant ended by itself; nil: none did.
func (c *Crew) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Files are the histories of all lives so far.
func (c *Crew) Files() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.files...)
}

// Quit has all leave, at the same time, and returns what they say is left.
func (c *Crew) Quit(ctx context.Context) []string {
	var mu sync.Mutex
	var left []string
	var all sync.WaitGroup
	for _, m := range c.Members {
		all.Go(func() {
			for _, text := range m.Quit(ctx) {
				mu.Lock()
				left = append(left, m.Who()+": "+text)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return left
}

// Stop ends all processes, whatever they are doing, and waits: their histories are whole
// then. It may be called again.
func (c *Crew) Stop() {
	for _, m := range c.Members {
		m.mu.Lock()
		p := m.proc
		m.proc = nil
		m.mu.Unlock()
		if p != nil {
			p.End()
		}
	}
}

// Close ends all processes and networks, whatever they are doing, and waits.
func (c *Crew) Close() error {
	c.Stop()
	var errs []error
	for _, m := range c.Members {
		errs = append(errs, m.Host.Close())
	}
	return errors.Join(errs...)
}

func (c *Crew) opened(file string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = append(c.files, file)
}

func (c *Crew) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = errors.Join(c.err, err)
}

func (c *Crew) stir() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}
