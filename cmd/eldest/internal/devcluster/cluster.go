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

// The defaults of a Config. They are short because on one machine nothing but the scheduler can be
// late, and allow leases of one second.
const (
	DefaultHeartbeatMS = 20
	DefaultElectionMS  = 200
)

// maxElectionMS is etcd's limit.
const maxElectionMS = 50000

// StartTimeout bounds the start of a development cluster: it takes a tenth of a second, and half a
// minute on an overloaded machine.
const StartTimeout = 30 * time.Second

// ErrInvalid is returned by Start for an invalid Config. The error names the flags of "eldest etcd".
var ErrInvalid = errors.New("invalid cluster")

// Config specifies the cluster to start. The zero value is one member with its data in a temporary
// directory.
type Config struct {
	// Members is 1, 3 or 5; 0 means 1, or the number in Dir.
	Members int
	// Dir keeps the data. "" is a temporary directory that Close removes.
	Dir string
	// HeartbeatMS and ElectionMS are etcd's timeouts in milliseconds; 0 means the defaults above.
	// Invariant: ElectionMS >= 5 x HeartbeatMS, and at most 50000 (etcd refuses others).
	HeartbeatMS, ElectionMS int
	// ClientPorts fixes the first members' client ports; the others are free ones.
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
	Members []Info // in order

	dir     string
	remove  bool // dir is ours
	servers []*Member
}

// Start starts a cluster and blocks until all its members serve requests or ctx ends. On an error
// nothing is left running. Once it has returned, ctx has no effect. The caller must Close the
// cluster.
func Start(ctx context.Context, cfg Config) (c *Cluster, err error) {
	cfg.HeartbeatMS, cfg.ElectionMS = cmp.Or(cfg.HeartbeatMS, DefaultHeartbeatMS), cmp.Or(cfg.ElectionMS, DefaultElectionMS)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c = &Cluster{dir: cfg.Dir, remove: cfg.Dir == ""}
	if c.remove {
		if c.dir, err = os.MkdirTemp("", "eldest-etcd-"); err != nil {
			return nil, err
		}
	}
	if err := c.start(ctx, cfg); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// check refuses what is invalid in every directory.
func (cfg Config) check() error {
	if cfg.ElectionMS > maxElectionMS {
		return fmt.Errorf("%w: --election %d is more than %d", ErrInvalid, cfg.ElectionMS, maxElectionMS)
	}
	if cfg.ElectionMS/5 < cfg.HeartbeatMS { // five times HeartbeatMS might overflow
		return fmt.Errorf("%w: --election %d is less than five times --heartbeat %d", ErrInvalid, cfg.ElectionMS, cfg.HeartbeatMS)
	}
	for i, port := range cfg.ClientPorts {
		if port < 1 || port > 65535 {
			return fmt.Errorf("%w: --client-port %d: want 1 to 65535", ErrInvalid, port)
		}
		if slices.Contains(cfg.ClientPorts[:i], port) { // later the directory would have it
			return fmt.Errorf("%w: --client-port %d is given twice", ErrInvalid, port)
		}
	}
	return nil
}

func (c *Cluster) start(ctx context.Context, cfg Config) error {
	lay, err := openLayout(c.dir, cfg)
	if err != nil {
		return err
	}
	for _, cfg := range lay.configs(c.dir, cfg, c.remove) {
		m, err := StartMember(cfg)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, m)
		c.Members = append(c.Members, Info{
			Name: cfg.Name, ID: m.ID(), ClientURL: cfg.ListenClientUrls[0].String(), PeerURL: cfg.ListenPeerUrls[0].String(), DataDir: cfg.Dir,
		})
	}
	for i, m := range c.servers {
		if err := m.Ready(ctx); err != nil {
			return fmt.Errorf("member %s: %w", c.Members[i].Name, err)
		}
	}
	return nil
}

// Endpoints are the client URLs of all members, in order.
func (c *Cluster) Endpoints() []string {
	var eps []string
	for _, m := range c.Members {
		eps = append(eps, m.ClientURL)
	}
	return eps
}

// Close stops all members, waits for them and removes the data directory if it was a temporary one.
func (c *Cluster) Close() error {
	// All servers are stopped first, and then their listeners: a listener waits a second for the
	// streams of members that are still running.
	for _, stop := range []func(*Member){func(m *Member) { m.etcd.Server.HardStop() }, (*Member).Stop} {
		var all sync.WaitGroup
		for _, m := range c.servers {
			all.Go(func() { stop(m) })
		}
		all.Wait()
	}
	if c.remove {
		return os.RemoveAll(c.dir)
	}
	return nil
}
