package etcdtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// ErrState is returned for a fault that the member's state does not allow, such as killing a dead
// member or restarting a running one.
var ErrState = errors.New("etcdtest: the member is in the wrong state for that")

// Member is one etcd member, over all its processes. Its methods may be called from many
// goroutines.
type Member struct {
	// Index is the member's number in the cluster, Name its name in etcd,
	// Endpoint its client URL.
	Index    int
	Name     string
	Endpoint string

	cluster    *Cluster
	token      string // the cluster's
	host, real string // ip:port, the advertised one and the real one
	log        string

	mu      sync.Mutex
	proc    *process // nil while dead
	stopped bool     // by SIGSTOP
	life    int      // how often it was replaced
	etcd    string   // the binary of the next start; "" is the embedded server
	id      uint64   // 0 before it was first ready
}

// ID is the member's ID in etcd.
func (m *Member) ID() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id
}

// Running reports whether the member's process exists and is not stopped.
func (m *Member) Running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc != nil && !m.stopped
}

// Kill ends the member with SIGKILL and waits until its process has ended. Its data stays, for
// Restart.
func (m *Member) Kill() error {
	m.mu.Lock()
	p := m.proc
	m.proc, m.stopped = nil, false
	m.mu.Unlock()
	if p == nil {
		return fmt.Errorf("%w: kill %s, which is dead", ErrState, m.Name)
	}
	return p.kill()
}

// Restart is Cluster.Restart for this member alone: it needs a majority that runs.
func (m *Member) Restart(ctx context.Context) error { return m.cluster.restart(ctx, m) }

// Use sets the etcd that the member runs from its next start on: the path of a binary, or "" for the
// embedded server. With Kill and Restart it is one step of a rolling upgrade or downgrade.
func (m *Member) Use(etcd string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.etcd = etcd
}

// Restore kills the member, removes its data, and restarts it with the data that restore writes to dir,
// as from a backup of a cluster of one. peer is the URL that the member advertises to its peers.
func (m *Member) Restore(ctx context.Context, restore func(dir, peer string) error) error {
	if err := m.Kill(); err != nil {
		return err
	}
	m.mu.Lock()
	dir := m.dataDir()
	m.mu.Unlock()
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := restore(dir, "http://"+m.host); err != nil {
		return err
	}
	return m.Restart(ctx)
}

// Stop halts the member with SIGSTOP and returns when it has halted. Its connections stay open, but
// no request on them is answered.
func (m *Member) Stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc == nil || m.stopped {
		return fmt.Errorf("%w: stop %s, which does not run", ErrState, m.Name)
	}
	err := m.proc.stop()
	m.stopped = !errors.Is(err, os.ErrProcessDone)
	return err
}

// Cont resumes a stopped member. It returns when the member runs again and has applied the
// partitions that the test has set meanwhile.
func (m *Member) Cont() error {
	m.mu.Lock()
	p := m.proc
	if p == nil || !m.stopped {
		m.mu.Unlock()
		return fmt.Errorf("%w: continue %s, which is not stopped", ErrState, m.Name)
	}
	m.stopped = false
	err := p.cont()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return m.cluster.applyCuts()
}

// start starts a new process; awaitReady waits until it serves. No cut is missed: those before are in the
// configuration, and m.mu makes who sets a later one wait for the process, which is then told.
func (m *Member) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.proc != nil {
		return fmt.Errorf("%w: start %s, which runs", ErrState, m.Name)
	}
	config, err := m.configure()
	if err != nil {
		return err
	}
	p, err := startProcess(m.cluster.cfg.Command, []string{config}, m.log, m.died)
	if err != nil {
		return err
	}
	m.proc = p
	return nil
}

// died reports that the member's process has ended by itself or was killed from outside.
func (m *Member) died(how *os.ProcessState) {
	tell, last := m.cluster.cfg.Died, ""
	if how.ExitCode() > 0 { // then its last line is the reason
		last = ": " + m.LogTail(1)
	}
	if tell != nil {
		tell(fmt.Errorf("etcd member %s ended by itself (%v)%s", m.Name, how, last))
	}
}

func (m *Member) awaitReady(ctx context.Context) error {
	p := m.running()
	if p == nil {
		return fmt.Errorf("%w: %s was killed while it started", ErrState, m.Name)
	}
	select {
	case r := <-p.ready:
		id, err := strconv.ParseUint(r.ID, 16, 64)
		m.mu.Lock()
		m.id = id
		m.mu.Unlock()
		return err
	case <-p.done:
		m.mu.Lock()
		if m.proc == p {
			m.proc = nil
		}
		m.mu.Unlock()
		tail := m.LogTail(20)
		if strings.Contains(tail, errInUse.Error()) {
			return fmt.Errorf("etcdtest: member %s: %w", m.Name, errInUse)
		}
		return fmt.Errorf("etcdtest: member %s ended while it started: %w\n%s", m.Name, p.err, tail)
	case <-ctx.Done():
		return fmt.Errorf("etcdtest: member %s is not ready: %w\n%s", m.Name, context.Cause(ctx), m.LogTail(20))
	}
}

// running returns the process, stopped or not, or nil.
func (m *Member) running() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.proc
}

// configure writes the configuration of the member's process, and returns its file. Members of
// one-member clusters need no fabric, but it is simpler to set up all clusters in one way. The
// caller holds m.mu.
func (m *Member) configure() (path string, err error) {
	c := m.cluster
	type route struct {
		Name string `json:"name"`
		Host string `json:"host"`
		Real string `json:"real"`
	}
	var routes []route
	var initial []string
	for _, peer := range c.members {
		initial = append(initial, peer.Name+"=http://"+peer.host)
		if !c.cfg.Direct {
			routes = append(routes, route{peer.Name, peer.host, peer.real})
		}
	}
	state := "new"
	if m.life > 0 {
		state = "existing"
	}
	settings := map[string]any{
		"etcd": m.etcd, "logger": "zap", // etcd 3.4 has another logger by default
		"name": m.Name, "data-dir": m.dataDir(), "routes": routes, "cut": c.cutLinks(),
		"listen-client-urls": m.Endpoint, "advertise-client-urls": m.Endpoint,
		"listen-peer-urls": "http://" + m.real, "initial-advertise-peer-urls": "http://" + m.host,
		"initial-cluster": strings.Join(initial, ","), "initial-cluster-token": m.token, "initial-cluster-state": state,
		"heartbeat-interval": c.cfg.Heartbeat.Milliseconds(), "election-timeout": c.cfg.Election.Milliseconds(),
		"max-txn-ops":     128, // the default, which a configuration file does not have
		"unsafe-no-fsync": !c.cfg.Fsync, "strict-reconfig-check": !c.cfg.Replaceable,
		"bcrypt-cost": 4, // the lowest: every stream of a client requests a token
		"log-level":   "info", "enable-grpc-gateway": false,
	}
	maps.Copy(settings, c.cfg.Settings)
	data, err := json.Marshal(settings)
	if err != nil {
		return "", err
	}
	path = m.dataDir() + ".json"
	return path, os.WriteFile(path, data, 0o600)
}

// dataDir is different for each replacement: a member that replaces another begins without data.
func (m *Member) dataDir() string {
	name := m.Name
	if m.life > 0 {
		name = fmt.Sprintf("%s.%d", m.Name, m.life)
	}
	return filepath.Join(m.cluster.dir.path, name)
}
