package benchsite

import (
	"context"
	"errors"
	"time"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// ErrInvalid is returned for data that cannot lie where it should; nothing was started.
var ErrInvalid = errors.New("invalid cluster")

// Config says which cluster to start.
type Config struct {
	// Member is the command line that runs a member; see etcdtest.Config.
	Member []string
	// Members is 1, 3 or 5.
	Members int
	// Data is Memory, Disk, or a directory in which the data gets a directory of its
	// own; "" is Memory where there is such a thing and Disk elsewhere.
	Data string
	// Died is called when a member ends by itself, from any goroutine.
	Died func(error)
}

// startTimeout bounds the start of a cluster, on a machine that can hardly breathe.
const startTimeout = 30 * time.Second

// Start starts a cluster and blocks until all its members serve requests, or ctx ends. It
// says where the data lies, for people. The caller must Close the cluster.
func Start(ctx context.Context, cfg Config) (cluster *etcdtest.Cluster, storage string, err error) {
	where, err := settle(cfg.Data, cfg.Members)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cluster, err = etcdtest.New(ctx, etcdtest.Config{
		Members: cfg.Members, Dir: where.dir, Command: cfg.Member, Died: cfg.Died,
		Heartbeat: 100 * time.Millisecond, Election: time.Second, Fsync: true, Direct: true, // as etcd of itself
	})
	return cluster, where.String(), err
}
