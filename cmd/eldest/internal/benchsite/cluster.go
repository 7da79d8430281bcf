package benchsite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/eldest-io/eldest/cmd/eldest/internal/devcluster"
	"github.com/eldest-io/eldest/cmd/eldest/internal/offspring"
)

// ErrInvalid is returned for a Config that makes no cluster; nothing was started.
var ErrInvalid = errors.New("invalid cluster")

// Role is what a process of this package is for.
type Role string

// The roles.
const (
	Member  Role = "member"
	Worker  Role = "worker"
	Janitor Role = "janitor"
)

// Command makes the command that runs a role: RunMember, bench.Work or RunJanitor.
type Command func(r Role, args ...string) *exec.Cmd

// Config says which cluster to start.
type Config struct {
	Command Command
	// Members is 1, 3 or 5.
	Members int
	// Data is Memory, Disk, or a directory in which the data gets a directory of its
	// own; "" is Memory where there is such a thing and Disk elsewhere.
	Data string
	// Died is called when a member ends by itself, from any goroutine.
	Died func(error)
}

// Cluster is a running cluster of member processes.
type Cluster struct {
	place     place
	endpoints []string
	spawner   *offspring.Spawner
	janitor   *janitor

	mu      sync.Mutex
	members []*offspring.Process
	closing bool
}

// Start starts a cluster and blocks until all its members serve requests, or ctx ends,
// which means nothing afterwards. On an error nothing is left. The caller must Close it.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	where, err := settle(cfg.Data, cfg.Members)
	if err != nil {
		return nil, err
	}
	c := &Cluster{place: where, spawner: offspring.NewSpawner()}
	if err := c.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, cfg Config) error {
	var err error
	if c.janitor, err = hire(cfg.Command, c.place.dir); err != nil {
		return err
	}
	cfgs, err := devcluster.Configs(devcluster.Config{Members: cfg.Members, Dir: c.place.dir})
	switch {
	case errors.Is(err, devcluster.ErrInvalid):
		return fmt.Errorf("%w: %d members; it can be 1, 3 or 5", ErrInvalid, cfg.Members)
	case err != nil:
		return err
	}
	// One after another without waiting, as package devcluster explains; processes
	// take so long to start that none finds another half started.
	serving := make(chan error, 2*len(cfgs))
	for _, m := range cfgs {
		c.endpoints = append(c.endpoints, m.ClientURL)
		if err := c.launch(cfg, m, serving); err != nil {
			return err
		}
	}
	for range cfgs {
		select {
		case err := <-serving:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("starting a cluster: %w", context.Cause(ctx))
		}
	}
	return nil
}

// launch starts a member. serving gets nil when it serves requests, and why not when it
// ends.
func (c *Cluster) launch(cfg Config, m devcluster.MemberConfig, serving chan<- error) error {
	cmd := cfg.Command(Member)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	said := func(line []byte) {
		var r ready
		if json.Unmarshal(line, &r) == nil && r.Ready {
			serving <- nil
		}
	}
	exited := func(p *offspring.Process) {
		code, complaint := p.Result()
		err := fmt.Errorf("member %s ended (exit code %d): %s", m.Name, code, complaint)
		if code < 0 {
			err = fmt.Errorf("member %s was killed", m.Name)
		}
		c.mu.Lock()
		closing := c.closing
		c.mu.Unlock()
		if !closing && cfg.Died != nil {
			cfg.Died(err)
		}
		serving <- err // there is room for both
	}
	p, err := c.spawner.Launch(cmd, said, exited)
	if err != nil {
		return fmt.Errorf("member %s: %w", m.Name, err)
	}
	c.mu.Lock()
	c.members = append(c.members, p)
	c.mu.Unlock()
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdin, string(line)+"\n")
	return err
}

// Endpoints are the client URLs of all members, in order.
func (c *Cluster) Endpoints() []string { return c.endpoints }

// Storage says where the data lies, for people.
func (c *Cluster) Storage() string { return c.place.String() }

// Close ends all members, whatever they are doing, and removes the data. Closing twice
// does nothing.
func (c *Cluster) Close() error {
	c.mu.Lock()
	twice := c.closing
	c.closing = true
	members := c.members
	c.mu.Unlock()
	if twice {
		return nil
	}
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(m.End)
	}
	all.Wait()
	c.spawner.Close()
	err := c.place.remove()
	c.janitor.dismiss()
	return err
}
