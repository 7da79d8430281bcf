package benchsite

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// ErrInvalid is returned if the data cannot be stored where Config.Data says; nothing was started.
var ErrInvalid = errors.New("invalid cluster")

// Config describes the cluster to measure on.
type Config struct {
	// Access is how to reach the cluster. Open sets its endpoints if it starts the cluster itself.
	Access *connect.Flags
	// Remote means that the cluster exists. The next three are for one that Open starts.
	Remote bool
	// Member is the command line that runs a member; see etcdtest.Config. Members is 1, 3 or 5.
	Member  []string
	Members int
	// Data is Memory, Disk, or a directory in which the data gets its own subdirectory; "" means
	// Memory if there is a file system in memory with enough space, else Disk.
	Data string
	// Worker is the command line that runs a worker.
	Worker []string
	// Died is called when a member ends by itself, from any goroutine.
	Died func(error)
}

// startTimeout bounds the start of a cluster; it is long enough for an overloaded machine.
const startTimeout = 30 * time.Second

// Site is the cluster to measure on, with what is needed to close it.
type Site struct {
	bench.Site
	undo []func() error
}

// Open starts a cluster, or queries the existing one, and blocks until that is done or ctx ends.
// The caller must Close the site. On an error nothing remains.
func Open(ctx context.Context, cfg Config) (*Site, error) {
	s := &Site{}
	if err := s.open(ctx, cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Site) open(ctx context.Context, cfg Config) error {
	if !cfg.Remote {
		where, err := Settle(cfg.Data, uint64(cfg.Members)*memberSpace)
		if err != nil {
			return err
		}
		starting, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		cluster, err := Start(starting, cfg.Members, where.Dir, cfg.Member, cfg.Died)
		if err != nil {
			return err
		}
		s.undo = append(s.undo, cluster.Close)
		cfg.Access.Endpoints, s.Storage = cluster.Endpoints(), where.String()
		if cfg.Members > 1 {
			s.KillLeader = KillLeader(cluster)
		}
	}
	client, err := cfg.Access.Config()
	if err != nil {
		return err
	}
	s.Client = *client
	asking, cancel := context.WithTimeout(ctx, cfg.Access.CommandTimeout)
	defer cancel()
	if err := s.survey(asking); err != nil {
		return err
	}
	greeting, err := json.Marshal(cfg.Access)
	if err != nil {
		return err
	}
	spawner := offspring.NewSpawner()
	s.undo = append(s.undo, func() error { spawner.Close(); return nil })
	s.WorkerInput, s.Start = []byte(string(greeting)+"\n"), spawner.Start
	s.Worker = func() *exec.Cmd {
		cmd := exec.Command(cfg.Worker[0], cfg.Worker[1:]...)
		cmd.Env = offspring.Env(os.Environ())
		return cmd
	}
	return nil
}

// Start starts a cluster with etcd's default timeouts and fsync, whose members are processes of a command line.
func Start(ctx context.Context, members int, dir string, member []string, died func(error)) (*etcdtest.Cluster, error) {
	return etcdtest.New(ctx, etcdtest.Config{
		Members: members, Dir: dir, Command: member, Died: died,
		Heartbeat: 100 * time.Millisecond, Election: time.Second, Fsync: true, Direct: true,
	})
}

// KillLeader returns the function of bench.Site for a cluster.
func KillLeader(of *etcdtest.Cluster) func(context.Context) (time.Time, func(context.Context) error, error) {
	return func(ctx context.Context) (killed time.Time, restart func(context.Context) error, err error) {
		leader, err := of.Leader(ctx)
		killed = time.Now()
		if err == nil {
			err = of.Member(leader).Kill()
		}
		return killed, func(ctx context.Context) error { return of.Restart(ctx, leader) }, err
	}
}

// Close ends everything that was started, in reverse order.
func (s *Site) Close() (err error) {
	for len(s.undo) > 0 {
		last := len(s.undo) - 1
		err = errors.Join(err, s.undo[last]())
		s.undo = s.undo[:last]
	}
	return err
}

// survey queries the cluster's members, version and metrics. It fails only if no endpoint answers
// at all: a user who may run a benchmark may not be allowed to make these requests.
func (s *Site) survey(ctx context.Context) error {
	client, err := clientv3.New(s.Client)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	list, err := client.MemberList(ctx)
	var urls []string
	if err == nil {
		s.Members = len(list.Members)
		for _, m := range list.Members {
			if len(m.ClientURLs) > 0 {
				urls = append(urls, m.ClientURLs[0])
			}
		}
	}
	errs := []error{err}
	for _, endpoint := range client.Endpoints() {
		status, err := client.Status(ctx, endpoint)
		if err == nil {
			s.Version = status.Version
			break
		}
		errs = append(errs, err)
	}
	if s.Members == 0 && s.Version == "" {
		return errors.Join(errs...)
	}
	m := newMetrics(urls, s.Client.TLS)
	if _, err := m.read(ctx); err == nil && len(urls) == s.Members { // without all members the sums would be incomplete
		s.Metrics = m.read
	}
	s.undo = append(s.undo, m.close)
	return nil
}
