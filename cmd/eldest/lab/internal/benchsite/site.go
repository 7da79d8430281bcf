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

// ErrInvalid is returned for data that cannot be where it should; nothing was started.
var ErrInvalid = errors.New("invalid cluster")

// Config says what to measure on.
type Config struct {
	// Access says how to reach the cluster. Its endpoints are set for a cluster of our own.
	Access *connect.Flags
	// Remote says that the cluster exists. The next three are for our own.
	Remote bool
	// Member is the command line that runs a member; see etcdtest.Config. Members is 1, 3 or 5.
	Member  []string
	Members int
	// Data is Memory, Disk, or a directory in which the data gets a directory of its
	// own; "" is Memory where there is such a thing and Disk elsewhere.
	Data string
	// Worker is the command line that runs a worker.
	Worker []string
	// Died is called when a member ends by itself, from any goroutine.
	Died func(error)
}

// startTimeout bounds the start of a cluster, on a machine that is overloaded.
const startTimeout = 30 * time.Second

// Site is what to measure on.
type Site struct {
	bench.Site
	undo []func() error
}

// Open starts a cluster, or asks the one that exists about itself, and blocks until that is done or ctx
// ends. The caller must Close the site. On an error nothing remains.
func Open(ctx context.Context, cfg Config) (*Site, error) {
	s := &Site{}
	if err := s.open(ctx, cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Site) open(ctx context.Context, cfg Config) error {
	if !cfg.Remote {
		where, err := settle(cfg.Data, cfg.Members)
		if err != nil {
			return err
		}
		starting, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		cluster, err := etcdtest.New(starting, etcdtest.Config{
			Members: cfg.Members, Dir: where.dir, Command: cfg.Member, Died: cfg.Died,
			Heartbeat: 100 * time.Millisecond, Election: time.Second, Fsync: true, Direct: true, // as etcd's own
		})
		if err != nil {
			return err
		}
		s.undo = append(s.undo, cluster.Close)
		cfg.Access.Endpoints, s.Storage = cluster.Endpoints(), where.String()
		if cfg.Members > 1 {
			s.KillLeader = func(ctx context.Context) (func(context.Context) error, error) {
				i, err := cluster.Leader(ctx)
				if err == nil {
					err = cluster.Member(i).Kill()
				}
				return func(ctx context.Context) error { return cluster.Restart(ctx, i) }, err
			}
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

// Close ends all that was started, the last first.
func (s *Site) Close() (err error) {
	for len(s.undo) > 0 {
		last := len(s.undo) - 1
		err = errors.Join(err, s.undo[last]())
		s.undo = s.undo[:last]
	}
	return err
}

// survey asks the cluster about itself. It fails only if no endpoint answers at all: a user who may
// measure may not be allowed to ask.
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
	if _, err := m.read(ctx); err == nil && len(urls) == s.Members { // those of some would be sums of some
		s.Metrics = m.read
	}
	s.undo = append(s.undo, m.close)
	return nil
}
