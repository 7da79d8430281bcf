package redispeer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// servers are the clients of this process, one for each server. The servers are independent of each other.
type servers []*redis.Client

func start(ctx context.Context, cfg peer.ServerConfig, nodes int) (_ *peer.Servers, err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w: redis-server", peer.ErrMissing)
	}
	ports, err := cfg.Fleet.Ports(nodes)
	if err != nil {
		return nil, err
	}
	var s servers
	var endpoints []string
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	for _, port := range ports {
		endpoint := "127.0.0.1:" + strconv.Itoa(port)
		dir := filepath.Join(cfg.Dir, strconv.Itoa(port))
		// All other settings are the defaults of redis-server without a configuration file.
		args := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir}
		err := errors.Join(os.Mkdir(dir, 0o700), cfg.Fleet.Start(endpoint, peer.Program{Path: program, Args: args, Dir: dir}))
		if err != nil {
			return nil, err
		}
		c := redis.NewClient(options(endpoint))
		s, endpoints = append(s, c), append(endpoints, endpoint)
		if err := cfg.Fleet.Await(ctx, endpoint, func(ctx context.Context) error { return c.Ping(ctx).Err() }); err != nil {
			return nil, err
		}
	}
	info, err := s[0].InfoMap(ctx, "server").Result()
	if err != nil {
		return nil, err
	}
	return &peer.Servers{
		Version: "Redis " + info["Server"]["redis_version"], Nodes: nodes, Endpoints: endpoints,
		Writes: s.writes, Close: s.close,
	}, nil
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

func (s servers) close() error {
	var errs []error
	for _, c := range s {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// writes is the number of changes of the servers' data. Redis counts commands, and changes since the last
// snapshot only; so the changes are derived: extensions, entries and deletions are commands, which the
// scripts call only if the lock is the caller's, and a key was created if it exists, has expired or was
// deleted.
func (s servers) writes(ctx context.Context) (sum int64, err error) {
	for _, c := range s {
		info, err := c.InfoMap(ctx, "commandstats", "stats", "keyspace").Result()
		if err != nil {
			return 0, err
		}
		// number returns the field of that name of a section's line, "" for all of it. Lines of what has not
		// happened yet are missing.
		number := func(section, line, field string) (n int64) {
			text := info[section][line]
			if field != "" {
				_, text, _ = strings.Cut(","+text, ","+field+"=")
				text, _, _ = strings.Cut(text, ",")
			}
			if text != "" && err == nil {
				n, err = strconv.ParseInt(text, 10, 64)
			}
			return n
		}
		commands := func(name string) int64 { return number("Commandstats", "cmdstat_"+name, "calls") }
		sum += commands("pexpire") + commands("rpush") + 2*commands("del") // a key that was deleted had been created
		sum += number("Keyspace", "db0", "keys") + number("Stats", "expired_keys", "")
		if err != nil {
			return 0, fmt.Errorf("line of INFO: %w", err)
		}
	}
	return sum, nil
}
