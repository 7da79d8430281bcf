package redispeer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/fleet"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// servers are independent of each other.
type servers struct {
	fleet     *fleet.Fleet
	endpoints []string
	clients   []*redis.Client // of this process, one for each server
	version   string
}

func start(ctx context.Context, cfg peer.ServerConfig, nodes int) (_ peer.Servers, err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w: redis-server", peer.ErrMissing)
	}
	ports, err := cfg.Ports(nodes)
	if err != nil {
		return nil, err
	}
	s := &servers{fleet: fleet.New(cfg.Run, cfg.Died)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, port := range ports {
		endpoint := "127.0.0.1:" + strconv.Itoa(port)
		dir := filepath.Join(cfg.Dir, strconv.Itoa(port))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		// All other settings are the defaults of redis-server without a configuration file.
		args := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir}
		if err := s.fleet.Start(endpoint, peer.Program{Path: program, Args: args, Dir: dir}); err != nil {
			return nil, err
		}
		s.endpoints = append(s.endpoints, endpoint)
		s.clients = append(s.clients, redis.NewClient(options(endpoint)))
	}
	for _, c := range s.clients {
		if err := serves(ctx, c); err != nil {
			return nil, err
		}
	}
	info, err := s.clients[0].InfoMap(ctx, "server").Result()
	if err != nil {
		return nil, err
	}
	s.version = "Redis " + info["Server"]["redis_version"]
	return s, nil
}

// options are go-redis' defaults, but for two: contexts end requests, because redsync limits the time of
// each request by a context; and the client does not ask for notifications of maintenance, which Redis 7
// does not have.
func options(endpoint string) *redis.Options {
	return &redis.Options{
		Addr:                     endpoint,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// serves blocks until the server answers, or ctx ends.
func serves(ctx context.Context, c *redis.Client) error {
	for {
		err := c.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("redis-server does not serve: %w", err)
		}
	}
}

func (s *servers) Version() string     { return s.version }
func (s *servers) Nodes() int          { return len(s.endpoints) }
func (s *servers) Endpoints() []string { return s.endpoints }

// KillLeader is not possible: no server leads others.
func (*servers) KillLeader(context.Context) (killed time.Time, restart func(context.Context) error, err error) {
	return time.Time{}, nil, fmt.Errorf("no Redis server leads others: %w", errors.ErrUnsupported)
}

func (s *servers) Close() error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, s.fleet.Close())...)
}
