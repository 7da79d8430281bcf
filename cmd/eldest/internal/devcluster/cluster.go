package devcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// Defaults of a Config. The timeouts are short because on one machine nothing
// but the scheduler can be late; they allow leases of one second.
const (
	DefaultHeartbeat = 20 * time.Millisecond
	DefaultElection  = 200 * time.Millisecond
)

// StartTimeout bounds the start of a development cluster: it takes a tenth of a second, and half a
// minute on an overloaded machine.
const StartTimeout = 30 * time.Second

// ErrInvalid is returned by Start for an invalid Config.
var ErrInvalid = errors.New("invalid cluster")

// Config specifies the cluster to start. The zero value is one member with its data in a temporary
// directory.
type Config struct {
	// Members is 1, 3 or 5; 0 means 1, or the number in Dir.
	Members int
	// Dir keeps the data. "" is a temporary directory that Close removes.
	Dir string
	// Heartbeat and Election are etcd's timeouts; 0 means the defaults above.
	// Invariant: Election >= 5 x Heartbeat (etcd refuses less).
	Heartbeat, Election time.Duration
	// ClientPorts fixes the first members' client ports; the others are free
	// ones.
	ClientPorts []int
	// Log receives the members' logs as JSON lines; nil discards them.
	Log io.Writer
}

// Info describes one member for people and programs.
type Info struct {
	Name      string `json:"name"`
	ID        string `json:"id"`
	ClientURL string `json:"client_url"`
	PeerURL   string `json:"peer_url"`
	DataDir   string `json:"data_dir"`
}

// Cluster is a running cluster. Its methods may be called from many goroutines.
type Cluster struct {
	dir     string
	remove  bool // dir is ours
	members []*Member
	infos   []Info
	closing sync.Once
}

// Start starts a cluster and blocks until all its members serve requests or ctx ends. On an error
// nothing is left running. Once it has returned, ctx has no effect. The caller must Close the
// cluster.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, DefaultHeartbeat)
	cfg.Election = cmp.Or(cfg.Election, max(DefaultElection, 5*cfg.Heartbeat))
	if cfg.Election < 5*cfg.Heartbeat {
		return nil, fmt.Errorf("%w: the election timeout %v is less than five heartbeats of %v", ErrInvalid, cfg.Election, cfg.Heartbeat)
	}

	c := &Cluster{dir: cfg.Dir}
	if c.dir == "" {
		dir, err := os.MkdirTemp("", "eldest-etcd-")
		if err != nil {
			return nil, err
		}
		c.dir, c.remove = dir, true
	}
	lay, err := openLayout(c.dir, cfg)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, cfg := range lay.configs(c.dir, cfg, c.remove) {
		m, err := StartMember(cfg)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.members = append(c.members, m)
		c.infos = append(c.infos, Info{
			Name: cfg.Name, ID: m.ID(), ClientURL: cfg.ListenClientUrls[0].String(), PeerURL: cfg.ListenPeerUrls[0].String(), DataDir: cfg.Dir,
		})
	}
	for i, m := range c.members {
		if err := m.Ready(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("member %s: %w", c.infos[i].Name, err), c.Close())
		}
	}
	return c, nil
}

// Endpoints are the client URLs of all members, in order.
func (c *Cluster) Endpoints() []string {
	var eps []string
	for _, m := range c.infos {
		eps = append(eps, m.ClientURL)
	}
	return eps
}

// Members describes the members, in order.
func (c *Cluster) Members() []Info { return slices.Clone(c.infos) }

// Close stops all members, waits for them and removes the data directory if it was a temporary one. A
// second Close does nothing.
func (c *Cluster) Close() (err error) {
	c.closing.Do(func() {
		// All servers are stopped first, and then their listeners: a listener waits a second for the
		// streams of members that are still running.
		each(c.members, func(m *Member) { m.etcd.Server.HardStop() })
		each(c.members, (*Member).Stop)
		if c.remove {
			err = os.RemoveAll(c.dir)
		}
	})
	return err
}

// each runs f for all members concurrently and waits.
func each(members []*Member, f func(*Member)) {
	var wg sync.WaitGroup
	for _, m := range members {
		wg.Go(func() { f(m) })
	}
	wg.Wait()
}
