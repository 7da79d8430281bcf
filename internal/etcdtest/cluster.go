package etcdtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Config describes the cluster to start. The zero value is one member.
type Config struct {
	// Members is 1, 3 or 5; 0 means 1.
	Members int
	// Heartbeat and Election are etcd's timeouts; 0 means 10 ms and ten
	// heartbeats. etcd's own are 100 ms and 1 s. The shortest lease is 1.5 x
	// Election, rounded up to seconds.
	Heartbeat, Election time.Duration
	// Settings are further fields of etcd's configuration file, such as "quota-backend-bytes". Clients
	// of a cluster with "client-transport-security" are made by the caller.
	Settings map[string]any
	// Command is the command line that runs a member, such as "eldest etcd member" where the caller
	// is eldest. The member's flags are appended to it. nil builds and runs the member's binary of
	// this repository.
	Command []string
	// Etcd is the binary of another etcd, which the members run in place of the embedded server. "" is
	// the value of the environment variable ELDEST_ETCD; if that is not set, the embedded server. Member.Use
	// sets it for one member. It needs Linux.
	Etcd string
	// Replaceable lets Replace work at any time. Otherwise etcd refuses to change its members until
	// all of them have been connected for five seconds.
	Replaceable bool
	// Dir is the directory in which the cluster's temporary directory is made. "" is a directory in
	// memory, where the system has one.
	Dir string
	// Fsync makes the members wait for the disk, as etcd does by default.
	Fsync bool
	// Direct makes the members connect to each other without the fabric. They cannot be partitioned
	// then.
	Direct bool
	// Died, if set, is called when a member's process ends that this cluster has not killed. It is
	// called from any goroutine and must not close the cluster.
	Died func(error)
}

// Limits for the parts of a cluster on a machine that is overloaded.
const (
	startTimeout = 60 * time.Second
	callTimeout  = 10 * time.Second
)

// etcdEnv is the environment variable that makes all tests run with another etcd.
const etcdEnv = "ELDEST_ETCD"

// errInUse means that another process took a port between its choice and its use.
var errInUse = errors.New("address already in use")

// Cluster is a running cluster. Its methods may be called from many goroutines;
// members are numbered from 0.
type Cluster struct {
	cfg     Config
	dir     *dataDir
	ports   *reservedPorts
	members []*Member

	tell sync.Mutex // held while the set of cut links is sent to the members

	mu      sync.Mutex
	cut     []Direction // per member: what is cut between it and all others
	clients map[string]*clientv3.Client
	closed  bool
}

// New starts a cluster and blocks until every member serves requests or ctx ends. This usually
// takes a tenth of a second; the very first call builds the member's binary as well. On an error
// nothing is left. ctx has no effect after New has returned. The caller must Close the cluster.
func New(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.Members == 0 {
		cfg.Members = 1
	}
	if cfg.Members != 1 && cfg.Members != 3 && cfg.Members != 5 {
		return nil, fmt.Errorf("etcdtest: %d members; it can be 1, 3 or 5", cfg.Members)
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 10 * time.Millisecond
	}
	if cfg.Election == 0 {
		cfg.Election = 10 * cfg.Heartbeat
	}
	cfg.Etcd = cmp.Or(cfg.Etcd, os.Getenv(etcdEnv))
	if len(cfg.Command) == 0 {
		binary, err := memberBinary()
		if err != nil {
			return nil, err
		}
		cfg.Command = []string{binary}
	}
	for {
		c, err := start(ctx, cfg)
		if err == nil || !errors.Is(err, errInUse) || ctx.Err() != nil {
			return c, err
		}
	}
}

// Start is New for tests: it fails the test on an error, closes the cluster when the test ends, and
// logs the last lines of the members' logs if the test failed.
func Start(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c, err := New(ctx, cfg)
	if err != nil {
		t.Fatalf("starting etcd: %v", err)
	}
	t.Cleanup(func() {
		c.showLogs(t)
		if err := c.Close(); err != nil {
			t.Errorf("closing etcd: %v", err)
		}
	})
	return c
}

func start(ctx context.Context, cfg Config) (c *Cluster, err error) {
	c = &Cluster{cfg: cfg, cut: make([]Direction, cfg.Members), clients: make(map[string]*clientv3.Client)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
			c = nil
		}
	}()
	if c.ports, err = reservePorts(2 * cfg.Members); err != nil {
		return c, err
	}
	if c.dir, err = newDataDir(cfg.Dir); err != nil {
		return c, err
	}
	token, scheme := fmt.Sprintf("%x", rand.Uint64()), "http"
	if cfg.Settings["client-transport-security"] != nil {
		scheme = "https"
	}
	for i := range cfg.Members {
		m := &Member{
			Index:    i,
			Name:     fmt.Sprintf("m%d", i+1),
			Endpoint: fmt.Sprintf("%s://127.0.0.1:%d", scheme, c.ports.ports[2*i]),
			cluster:  c,
			host:     fmt.Sprintf("192.0.2.%d:2380", i+1),
			real:     fmt.Sprintf("127.0.0.1:%d", c.ports.ports[2*i+1]),
			token:    token,
			etcd:     cfg.Etcd,
		}
		m.log = filepath.Join(c.dir.path, m.Name+".log")
		if cfg.Direct {
			m.host = m.real
		}
		c.members = append(c.members, m)
	}
	return c, c.restart(ctx, c.members...)
}

// Size is the number of members, running or not.
func (c *Cluster) Size() int { return len(c.members) }

// Member returns member i.
func (c *Cluster) Member(i int) *Member { return c.members[i] }

// Endpoints are the client URLs of all members, in order. They stay the same when
// members restart.
func (c *Cluster) Endpoints() []string {
	eps := make([]string, len(c.members))
	for i, m := range c.members {
		eps[i] = m.Endpoint
	}
	return eps
}

// Restart restarts members that were killed, with their data, and blocks until they serve requests
// or ctx ends. Members that form a majority only together must be restarted in one call.
func (c *Cluster) Restart(ctx context.Context, members ...int) error {
	var ms []*Member
	for _, i := range members {
		ms = append(ms, c.members[i])
	}
	return c.restart(ctx, ms...)
}

func (c *Cluster) restart(ctx context.Context, members ...*Member) error {
	for _, m := range members {
		if err := m.start(); err != nil {
			return err
		}
	}
	for _, m := range members {
		if err := m.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close kills all members, waits for them and removes their data. Hosts must be closed before it,
// and clients should be. A second Close does nothing.
func (c *Cluster) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	clients := c.clients
	c.clients = nil
	c.mu.Unlock()
	if closed {
		return nil
	}
	var errs []error
	for _, cli := range clients {
		errs = append(errs, cli.Close())
	}
	for _, m := range c.members {
		if p := m.running(); p != nil {
			errs = append(errs, p.kill())
		}
	}
	if c.dir != nil {
		errs = append(errs, c.dir.remove())
	}
	if c.ports != nil {
		c.ports.release()
	}
	return errors.Join(errs...)
}

// showLogs logs the end of each member's log when the test has failed.
func (c *Cluster) showLogs(t testing.TB) {
	if !t.Failed() {
		return
	}
	for _, m := range c.members {
		t.Logf("log of etcd member %s (%s):\n%s", m.Name, m.Endpoint, m.LogTail(40))
	}
}

// LogTail returns the last lines of the member's log, which all its processes have written.
func (m *Member) LogTail(lines int) string {
	data, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
